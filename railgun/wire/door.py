"""The door for single events: from a client's JSON object to values that can be recorded, or clear errors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from railgun.wire.schema import EVENT_TIME_MIN_MS, Kind, Schema
from railgun.wire.values import MisfitError, decode_json, reader

Location = tuple[str | int, ...]

NO_TIME = "the time of an event is needed"
NO_ID = "the id of an event is needed"

_KEYS = (Kind.STRING, Kind.LONG)


class FieldError(NamedTuple):
    """What is wrong with an event: where (the field; nothing for the event itself) and what."""

    loc: Location
    msg: str


class EventRefusedError(ValueError):
    """An event that cannot be taken, with everything that is wrong with it."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__(self.errors)

    def __str__(self) -> str:
        return "; ".join(f"{'.'.join(map(str, loc)) or 'event'}: {msg}" for loc, msg in self.errors)


class Admitted(NamedTuple):
    """An event that can be recorded.

    id: its text; None where the stream has no id field.  time_ms: None where it has no time field.
    values: in schema order, as `encode_event` takes them.
    """

    id: str | None
    time_ms: int | None
    values: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Roles:
    """Which fields of a schema have a meaning of their own; raises ValueError where they cannot."""

    schema: Schema
    time: str | None = None
    id: str | None = None
    partitioners: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.time is not None:
            self._check(self.time, (Kind.TIMESTAMP,))
        for name in (*([] if self.id is None else [self.id]), *self.partitioners):
            self._check(name, _KEYS)

    def _check(self, name: str, kinds: Sequence[Kind]) -> None:
        place = self.schema.index(name)
        if place < 0 or self.schema.fields[place].type.kind not in kinds:
            raise ValueError(f"{name} is no field of type {' or '.join(kind.name.lower() for kind in kinds)}")


class Door:
    """Checks events of one stream under one schema.

    ignored_values: how many values of unknown fields it has met and left out.
    """

    def __init__(self, roles: Roles) -> None:
        schema = roles.schema
        self.roles = roles
        self.ignored_values = 0
        self._fields = [(field.name, reader(field.type)) for field in schema.fields]
        self._time = -1 if roles.time is None else schema.index(roles.time)
        self._id = -1 if roles.id is None else schema.index(roles.id)

    def admit_json(self, body: bytes, latest_ms: int | None = None) -> Admitted:
        """`admit` of a JSON object's text."""
        try:
            event = decode_json(body)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise EventRefusedError([FieldError((), f"no JSON: {error}")]) from None
        return self.admit(event, latest_ms)

    def admit(self, event: Any, latest_ms: int | None = None) -> Admitted:
        """Check an event: a mapping of field names to JSON values (`decode_json`) or their Python equals.

        latest_ms: the latest time taken, None for no limit.  Raises EventRefusedError.
        """
        if not isinstance(event, Mapping):
            raise EventRefusedError([FieldError((), "an event is a JSON object")])
        values: list[Any] = []
        known = 0
        get = event.get
        try:
            for name, read in self._fields:
                value = get(name)
                if value is None:
                    values.append(None)
                    known += name in event
                else:
                    values.append(read(value))
                    known += 1
        except MisfitError:
            raise self._refused(event, latest_ms) from None
        time_ms = None if self._time < 0 else values[self._time]
        event_id = None if self._id < 0 else values[self._id]
        if (self._time >= 0 and not is_time(time_ms, latest_ms)) or (self._id >= 0 and event_id is None):
            raise self._refused(event, latest_ms)
        self.ignored_values += len(event) - known
        return Admitted(None if event_id is None else str(event_id), time_ms, values)

    def _refused(self, event: Mapping[str, Any], latest_ms: int | None) -> EventRefusedError:
        """Everything that is wrong with an event."""
        errors: list[FieldError] = []
        for i, (name, read) in enumerate(self._fields):
            value = event.get(name)
            try:
                checked = None if value is None else read(value)
            except MisfitError as error:
                errors.append(FieldError((name,), str(error)))
                continue
            if checked is None and i == self._time:
                errors.append(FieldError((name,), NO_TIME))
            elif checked is None and i == self._id:
                errors.append(FieldError((name,), NO_ID))
            elif i == self._time and not is_time(checked, latest_ms):
                errors.append(FieldError((name,), no_time_of_an_event(checked, latest_ms)))
        return EventRefusedError(errors)


def is_time(time_ms: int | None, latest_ms: int | None) -> bool:
    """May an event have this time? latest_ms: the latest one taken, None for no limit."""
    if time_ms is None or time_ms < EVENT_TIME_MIN_MS:
        return False
    return latest_ms is None or time_ms <= latest_ms


def no_time_of_an_event(time_ms: Any, latest_ms: int | None) -> str:
    """Why a time is refused that its field could hold."""
    if latest_ms is None or time_ms < EVENT_TIME_MIN_MS:
        return f"{time_ms} stands for minus infinity; the least time of an event is {EVENT_TIME_MIN_MS}"
    ahead = f"{time_ms} is {time_ms - latest_ms} ms further ahead than the stream's max_future allows"
    return f"{ahead}; is the sender's clock right, and is it in ms?"
