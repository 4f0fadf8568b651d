"""Finds the values of fields in an event: at their paths, in its document or in the record of a topic that has it.

Validators and readers of files call it; it does no I/O.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from railgun.wire.path import HEADER, KEY, Path, Step, text_of
from railgun.wire.schema import Field, Schema
from railgun.wire.text_values import text_reader
from railgun.wire.values import Milliseconds, MisfitError, misfit, reader

NO_TIME_MS = -1


@dataclass(frozen=True, slots=True)
class EventRecord:
    """What a record of a topic has beside its value.

    key: None for none.  headers: by name, the last of each.  timestamp_ms: NO_TIME_MS for none.
    """

    key: bytes | None = None
    headers: Mapping[str, bytes | None] | None = None
    timestamp_ms: int = NO_TIME_MS


NO_RECORD = EventRecord()
"""The record of an event that came another way."""


def find(path: Path, event: Mapping[str, Any]) -> Any:
    """Return what a path meets in a document: None for nothing. Raises MisfitError."""
    value: Any = event
    for number, step in enumerate(path.steps):
        if value is None:
            return None
        if isinstance(step, str):
            if not isinstance(value, Mapping):
                raise _in_the_way(path, number, value, "an object")
            value = value.get(step)
        else:
            if not isinstance(value, list | tuple):
                raise _in_the_way(path, number, value, "an array")
            value = value[step] if step < len(value) else None
    return value


def meets(path: Path, event: Mapping[str, Any], record: EventRecord) -> bool:
    """Return whether a path meets a value in an event or its record, of whatever kind. Null is none."""
    if path.of_record == KEY:
        return record.key is not None
    if path.of_record == HEADER:
        return (record.headers or {}).get(path.header) is not None
    if path.of_record:
        return record.timestamp_ms != NO_TIME_MS
    try:
        return find(path, event) is not None
    except MisfitError:
        # There is something, and the event is refused for it.
        return True


def _in_the_way(path: Path, number: int, value: Any, expected: str) -> MisfitError:
    return MisfitError(f"{misfit(value, expected)}, at {text_of(path.steps[:number])}")


Find = Callable[[Mapping[str, Any]], Any]


def finder(field: Field) -> Find:
    """Return the function that reads a field of a document as a typed value. It raises MisfitError."""
    read, path, name = reader(field.type), field.path, field.name

    def at_path(event: Mapping[str, Any]) -> Any:
        assert path is not None
        value = find(path, event)
        return None if value is None else read(value)

    def by_name(event: Mapping[str, Any]) -> Any:
        value = event.get(name)
        return None if value is None else read(value)

    if path is not None and path.of_record:
        return lambda event: None
    return by_name if path is None else at_path


def steps_of(field: Field) -> tuple[Step, ...]:
    """Return the steps to a field in a document; none if it is in the record of a topic."""
    return (field.name,) if field.path is None else field.path.steps


def top_level_names(schema: Schema) -> frozenset[str]:
    """Return the keys of a document in which fields are."""
    return frozenset(str(steps[0]) for steps in map(steps_of, schema.fields) if steps)


class RecordFields:
    """The fields of a schema that are in records of a topic, beside their values."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._read: dict[int, Callable[[EventRecord], Any]] = {
            place: _reader_of(field, field.path)
            for place, field in enumerate(fields)
            if field.path is not None and field.path.of_record
        }

    @classmethod
    def of(cls, fields: Sequence[Field]) -> "RecordFields | None":
        """Return those of some fields; None if there are none."""
        found = cls(fields)
        return found if found._read else None

    def __contains__(self, place: int) -> bool:
        return place in self._read

    def value(self, place: int, record: EventRecord) -> Any:
        """Return the value of a field by its place in the schema. Raises MisfitError."""
        return self._read[place](record)

    def put(self, values: Sequence[Any], record: EventRecord) -> list[Any]:
        """Return an event's values with those of a record in their places. Raises MisfitError."""
        found = list(values)
        for place, read in self._read.items():
            found[place] = read(record)
        return found


def _reader_of(field: Field, path: Path) -> Callable[[EventRecord], Any]:
    of_text, of_time = text_reader(field.type), reader(field.type)
    if path.of_record == KEY:
        return lambda record: _of_text(record.key, of_text)
    if path.of_record == HEADER:
        return lambda record: _of_text((record.headers or {}).get(path.header), of_text)
    return lambda record: _of_time(record.timestamp_ms, of_time)


def _of_time(time_ms: int, read: Callable[[int], Any]) -> Any:
    return None if time_ms == NO_TIME_MS else read(Milliseconds(time_ms))


def _of_text(data: bytes | None, read: Callable[[str], Any]) -> Any:
    if data is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise MisfitError("it is no UTF-8") from None
    return read(text)
