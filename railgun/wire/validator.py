"""Validates single events: turns a client's JSON object into values that can be recorded, or raises clear errors.

The intake of engines and front-ends calls it. It does no I/O.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from railgun.wire.finding import NO_RECORD, EventRecord, RecordFields, finder
from railgun.wire.schema import EVENT_TIME_MIN_MS, Schema, WireKind
from railgun.wire.values import MisfitError, decode_json, reader

Location = tuple[str | int, ...]

NO_TIME = "the time of an event is needed"
NO_ID = "the id of an event is needed"

_KEYS = (WireKind.STRING, WireKind.LONG)


class FieldError(NamedTuple):
    """An error in an event: where it is (the field; empty for the event itself), and what is wrong."""

    loc: Location
    msg: str


class EventRefusedError(ValueError):
    """The event is refused. `errors` holds everything that is wrong with it."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__(self.errors)

    def __str__(self) -> str:
        return "; ".join(f"{'.'.join(map(str, loc)) or 'event'}: {msg}" for loc, msg in self.errors)


class ValidatedEvent(NamedTuple):
    """An event that can be recorded.

    id: its text; None if the stream has no id field.
    time_ms: in ms since 1970; None if the stream has no time field.
    values: in schema order, as `encode_event` takes them.
    """

    id: str | None
    time_ms: int | None
    values: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Roles:
    """Which fields of a schema have a special meaning. Raises ValueError for fields that cannot have it."""

    schema: Schema
    time: str | None = None
    id: str | None = None
    partitioners: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.time is not None:
            self._check(self.time, (WireKind.TIMESTAMP,))
        for name in (*([] if self.id is None else [self.id]), *self.partitioners):
            self._check(name, _KEYS)

    def _check(self, name: str, kinds: Sequence[WireKind]) -> None:
        place = self.schema.index(name)
        if place < 0 or self.schema.fields[place].type.kind not in kinds:
            raise ValueError(f"{name} is no field of type {' or '.join(kind.name.lower() for kind in kinds)}")


class EventValidator:
    """Validates events of one stream under one schema."""

    def __init__(self, roles: Roles) -> None:
        schema = roles.schema
        self.roles = roles
        self._fields = [(field.name, reader(field.type)) for field in schema.fields]
        self._time = -1 if roles.time is None else schema.index(roles.time)
        self._id = -1 if roles.id is None else schema.index(roles.id)

    def admit_json(self, body: bytes, latest_ms: int | None = None) -> ValidatedEvent:
        """Do the same as `admit` for the text of a JSON object."""
        try:
            event = decode_json(body)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise EventRefusedError([FieldError((), f"no JSON: {error}")]) from None
        return self.admit(event, latest_ms)

    def admit(
        self, event: Any, latest_ms: int | None = None, record: EventRecord = NO_RECORD
    ) -> ValidatedEvent:
        """Validate an event: a mapping of field names to JSON values (`decode_json`) or their Python equivalents.

        latest_ms: the latest time that is accepted; None for no limit.
        record: that of the topic which has the event.
        Raises EventRefusedError.
        """
        if not isinstance(event, Mapping):
            raise EventRefusedError([FieldError((), "an event is a JSON object")])
        try:
            values = self._values(event, record)
        except MisfitError:
            raise self._refused(event, latest_ms, record) from None
        time_ms = None if self._time < 0 else values[self._time]
        event_id = None if self._id < 0 else values[self._id]
        if (self._time >= 0 and not is_time(time_ms, latest_ms)) or (self._id >= 0 and event_id is None):
            raise self._refused(event, latest_ms, record)
        return ValidatedEvent(None if event_id is None else str(event_id), time_ms, values)

    def _values(self, event: Mapping[str, Any], record: EventRecord) -> list[Any]:
        """Return the values of the fields in an event. Raises MisfitError."""
        values: list[Any] = []
        get = event.get
        for name, read in self._fields:
            value = get(name)
            values.append(None if value is None else read(value))
        return values

    def _value(self, event: Mapping[str, Any], place: int, record: EventRecord) -> Any:
        """Return the value of one field. Raises MisfitError."""
        name, read = self._fields[place]
        value = event.get(name)
        return None if value is None else read(value)

    def _refused(
        self, event: Mapping[str, Any], latest_ms: int | None, record: EventRecord
    ) -> EventRefusedError:
        """Return the error with everything that is wrong with an event."""
        errors: list[FieldError] = []
        for i, field in enumerate(self.roles.schema.fields):
            where = (field.place,)
            try:
                checked = self._value(event, i, record)
            except MisfitError as error:
                errors.append(FieldError(where, str(error)))
                continue
            if checked is None and i == self._time:
                errors.append(FieldError(where, NO_TIME))
            elif checked is None and i == self._id:
                errors.append(FieldError(where, NO_ID))
            elif i == self._time and not is_time(checked, latest_ms):
                errors.append(FieldError(where, time_error(checked, latest_ms)))
        return EventRefusedError(errors)


class PathValidator(EventValidator):
    """Validates events of a stream whose fields have paths."""

    def __init__(self, roles: Roles) -> None:
        super().__init__(roles)
        self._finders = [finder(field) for field in roles.schema.fields]
        self._of_record = RecordFields.of(roles.schema.fields)

    def _values(self, event: Mapping[str, Any], record: EventRecord) -> list[Any]:
        values = [find(event) for find in self._finders]
        return values if self._of_record is None else self._of_record.put(values, record)

    def _value(self, event: Mapping[str, Any], place: int, record: EventRecord) -> Any:
        if self._of_record is not None and place in self._of_record:
            return self._of_record.value(place, record)
        return self._finders[place](event)


def event_validator(roles: Roles) -> EventValidator:
    """Return the validator of a stream's events."""
    return PathValidator(roles) if roles.schema.has_paths else EventValidator(roles)


def is_time(time_ms: int | None, latest_ms: int | None) -> bool:
    """Whether an event may have this time. latest_ms: the latest time that is accepted; None for no limit."""
    if time_ms is None or time_ms < EVENT_TIME_MIN_MS:
        return False
    return latest_ms is None or time_ms <= latest_ms


def time_error(time_ms: Any, latest_ms: int | None) -> str:
    """Return why a time is refused that its field could hold."""
    if latest_ms is None or time_ms < EVENT_TIME_MIN_MS:
        return f"{time_ms} stands for minus infinity; the least time of an event is {EVENT_TIME_MIN_MS}"
    ahead = f"{time_ms} is {time_ms - latest_ms} ms further ahead than the stream's max_future allows"
    return f"{ahead}; is the sender's clock right, and is it in ms?"
