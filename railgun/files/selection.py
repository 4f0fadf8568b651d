"""Compares a file's columns with a stream's fields, for the readers of files.

Other columns are left out; a missing one is an error.
"""

from collections.abc import Sequence

import pyarrow as pa

from railgun.files.errors import ColumnError
from railgun.language.errors import nearest
from railgun.wire.arrow_paths import PathTypeError, field_types
from railgun.wire.arrow_types import column_type_errors
from railgun.wire.finding import top_level_names
from railgun.wire.schema import Schema
from railgun.wording import listed


def check_columns(file: str, columns: Sequence[str], schema: Schema) -> tuple[str, ...]:
    """Return the names of columns in which no fields are. Raises ColumnError for one that is missing or there twice.

    A column in which a path begins may be missing: what the path does not meet is null.
    """
    requested = top_level_names(schema)
    for name in columns:
        if name in requested and columns.count(name) > 1:
            raise ColumnError(file, f"two columns are named {name}; rename or remove one")
    missing = [field.name for field in schema.fields if field.path is None and field.name not in columns]
    if missing:
        raise ColumnError(file, _missing(missing, [name for name in columns if name not in requested]))
    return tuple(name for name in columns if name not in requested)


def check_arrow_columns(file: str, found: pa.Schema, schema: Schema) -> tuple[str, ...]:
    """Do the same for columns with types. Raises ColumnError also if no value of a column can be its field's."""
    ignored = check_columns(file, found.names, schema)
    try:
        wrong = column_type_errors(field_types(found, schema), schema)
    except PathTypeError as error:
        raise ColumnError(file, str(error)) from None
    if wrong is not None:
        raise ColumnError(file, wrong)
    return ignored


def _missing(missing: Sequence[str], others: Sequence[str]) -> str:
    what = f"the field{'s' if len(missing) > 1 else ''} {listed(missing)}"
    near = nearest(missing[0], others)
    if near is not None:
        hint = f"column {near} is no field: should it be {missing[0]}?"
    elif others:
        hint = f"columns that are no field: {', '.join(name[:40] for name in others[:5])}"
    else:
        hint = "add the column, or take the field out of the definition"
    return f"there is no column for {what}; {hint}"
