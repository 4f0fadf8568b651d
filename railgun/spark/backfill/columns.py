"""Makes the fields of a stream from columns of history, by name or by SQL, and checks their types before any work."""

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    CharType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
)

from railgun.catalog.model import StreamDefinition
from railgun.language.errors import nearest
from railgun.language.types import Kind
from railgun.spark.backfill.source import REFUSED, HistorySource
from railgun.spark.errors import ColumnError
from railgun.spark.worker_errors import first_line
from railgun.wire.arrow_types import TAKEN
from railgun.wire.schema import WireKind

_TEXT = (StringType, VarcharType, CharType)
_WHOLE = (ByteType, ShortType, IntegerType, LongType)
_SPARK_TYPES: Mapping[Kind, tuple[type[DataType], ...]] = {
    Kind.STRING: _TEXT,
    Kind.LONG: _WHOLE,
    Kind.DOUBLE: (DoubleType, FloatType, *_WHOLE),
    Kind.BOOLEAN: (BooleanType,),
    Kind.DECIMAL: (DecimalType, *_WHOLE, *_TEXT),
    Kind.TIMESTAMP: (TimestampType, TimestampNTZType, *_WHOLE, *_TEXT),
}


def fields_of(
    frame: DataFrame, source: HistorySource, stream: StreamDefinition, columns: Mapping[str, str]
) -> DataFrame:
    """Return the rows with one column for each field, in the stream's order, and with REFUSED if the history has it.

    REFUSED marks rows that their file's reader could not read.
    columns: by field, the SQL expression that gives it; in the simplest case a column's name.
    Raises ColumnError for a missing column, or for one of a type that the field cannot take.
    """
    for name in columns:
        if name not in stream.recorded_types:
            near = nearest(name, stream.recorded_types)
            hint = f"did you mean {near}?" if near else f"its fields are {', '.join(stream.recorded_types)}"
            raise ColumnError(f"stream {stream.name} has no field {name[:80]!r}; {hint}")
    chosen = []
    for name in stream.recorded_types:
        if name not in columns and name not in frame.columns:
            free = [each for each in frame.columns if each not in stream.recorded_types]
            near = nearest(name, free)
            others = f"; its other columns are {', '.join(free[:8])}" if free else ""
            hint = (
                f"--column {name}={near}, perhaps"
                if near
                else f"say what it is made of, in SQL: --column {name}=...{others}"
            )
            raise ColumnError(f"the history has no column for the field {name}; {hint}")
        chosen.append((F.expr(columns[name]) if name in columns else F.col(f"`{name}`")).alias(name))
    try:
        made = frame.select(*chosen, *([REFUSED] if REFUSED in frame.columns else []))
    except PySparkException as error:
        raise ColumnError(f"the mapping of columns: {first_line(error)}") from error
    for name, type_ in stream.recorded_types.items():
        _check_type(name, type_.kind, made.schema[name].dataType, is_text=source.is_text, field=str(type_))
    return made


def _check_type(name: str, kind: Kind, found: DataType, *, is_text: bool, field: str) -> None:
    if isinstance(found, (NullType, *_SPARK_TYPES[kind])) or (is_text and isinstance(found, _TEXT)):
        return
    takes = TAKEN[WireKind[kind.name]]
    raise ColumnError(
        f"the column for the field {name} has {found.simpleString()}; {field} takes {takes}: convert it, as in "
        f"--column '{name}=CAST({name} AS ...)'"
    )
