"""Decodes Avro to events."""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import fastavro

from frontend.formats.errors import ValueUnreadableError
from railgun.files.avro_bounds import UnboundedSchemaError, check_bounds
from railgun.files.avro_conversion import Conversions, without_logical_types
from railgun.files.errors import ColumnError
from railgun.wire.schema import Schema


def parsed(written: Any, references: Iterable[Any]) -> Any:
    """Return a schema as fastavro reads with it. Raises ValueUnreadableError, and whatever fastavro raises.

    references: the schemas that it names, each behind those that it names itself.
    """
    if not isinstance(written, Mapping) or written.get("type") != "record":
        raise ValueUnreadableError("it is no record; events are records")
    known: dict[str, Any] = {}
    for each in references:
        fastavro.parse_schema(each, named_schemas=known)
    found = fastavro.parse_schema(written, named_schemas=known)
    try:
        check_bounds(found, known)
    except UnboundedSchemaError as error:
        raise ValueUnreadableError(str(error)) from None
    return found


class AvroReader:
    """Decodes records of one schema.

    place: what errors call the schema.
    text: the schema as JSON.  references: the schemas that it names, each behind those that it names itself.
    fields: the schema of what comes in.
    Raises ValueUnreadableError if the schema cannot be used.
    """

    def __init__(self, place: str, text: str, references: Sequence[str], fields: Schema) -> None:
        try:
            written, named = json.loads(text), [json.loads(each) for each in references]
            self._plain = parsed(without_logical_types(written), map(without_logical_types, named))
            self._conversions = Conversions(place, written, fields, named)
        except ColumnError as error:
            raise ValueUnreadableError(str(error)) from error
        except ValueUnreadableError as error:
            raise ValueUnreadableError(f"{place}: {error}") from None
        except Exception as error:  # a foreign schema makes a parser fail in any way
            raise ValueUnreadableError(
                f"{place} cannot be read: {str(error) or type(error).__name__}"
            ) from error

    def read(self, value: bytes) -> dict[str, Any]:
        """Return the event. Raises ValueUnreadableError."""
        data = io.BytesIO(value)
        try:
            # What is no UTF-8 becomes lone surrogates, for which the event is refused with the field's name.
            event: Any = fastavro.schemaless_reader(
                data, self._plain, None, handle_unicode_errors="surrogateescape"
            )
            self._conversions.convert(event)
        except Exception as error:  # foreign bytes make a decoder fail in any way
            raise ValueUnreadableError(
                f"no Avro of its schema: {str(error) or type(error).__name__}"
            ) from error
        if data.tell() != len(value):
            raise ValueUnreadableError(
                f"no Avro of its schema: {len(value) - data.tell()} bytes are left over"
            )
        return dict(event)
