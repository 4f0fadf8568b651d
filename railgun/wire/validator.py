"""Validates single events: turns a client's JSON object into values that can be recorded, or raises clear errors.

If every value has its field's JSON type, one call decodes the event, three times as fast.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import msgspec

from railgun.wire.schema import EVENT_TIME_MIN_MS, STRING_LIMIT_BYTES, Schema, WireKind
from railgun.wire.values import LONG_MAX, LONG_MIN, MisfitError, decode_json, read_timestamp, reader

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
    """Validates events of one stream under one schema.

    ignored_values: how many values of unknown fields were left out so far.
    """

    def __init__(self, roles: Roles) -> None:
        schema = roles.schema
        self.roles = roles
        self.ignored_values = 0
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

    def admit(self, event: Any, latest_ms: int | None = None) -> ValidatedEvent:
        """Validate an event: a mapping of field names to JSON values (`decode_json`) or their Python equivalents.

        latest_ms: the latest time that is accepted; None for no limit. Raises EventRefusedError.
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
        return ValidatedEvent(None if event_id is None else str(event_id), time_ms, values)

    def _refused(self, event: Mapping[str, Any], latest_ms: int | None) -> EventRefusedError:
        """Return the error with everything that is wrong with an event."""
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
                errors.append(FieldError((name,), time_error(checked, latest_ms)))
        return EventRefusedError(errors)


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


# Every integer between these limits has a double of its own, so none is rounded silently.
_EXACT_MIN, _EXACT_MAX = -(2.0**53), 2.0**53
_Long = Annotated[int, msgspec.Meta(ge=LONG_MIN, le=LONG_MAX)]
_SHAPES: dict[WireKind, tuple[Any, Any]] = {
    WireKind.STRING: (str | None, None),
    WireKind.LONG: (_Long | None, None),
    WireKind.DOUBLE: (Annotated[float, msgspec.Meta(gt=_EXACT_MIN, lt=_EXACT_MAX)] | None, None),
    WireKind.BOOLEAN: (bool | None, None),
    WireKind.TIMESTAMP: (_Long | str | None, None),
    WireKind.DECIMAL: (msgspec.Raw, msgspec.Raw(b"null")),
}
# After k misses in a row, the next k - 1 texts are not tried, up to this many. If all texts have an unknown field,
# trying is useless.
_UNTRIED_MAX = 63
_MINUS = b"-"


class TypedValidator:
    """A faster validator of JSON texts. It gives the same result as `EventValidator`, or None. One thread uses it."""

    def __init__(self, roles: Roles) -> None:
        schema = roles.schema
        names = [f"f{place}" for place in range(len(schema.fields))]
        shape = msgspec.defstruct(
            "Event",
            [(name, *_SHAPES[field.type.kind]) for name, field in zip(names, schema.fields)],
            rename=dict(zip(names, (field.name for field in schema.fields))),
            gc=False,
            forbid_unknown_fields=True,
        )
        self._decode = msgspec.json.Decoder(shape).decode
        self._time = -1 if roles.time is None else schema.index(roles.time)
        self._id = -1 if roles.id is None else schema.index(roles.id)
        kinds = [field.type.kind for field in schema.fields]
        self._doubles = _places(kinds, WireKind.DOUBLE)
        self._times = _places(kinds, WireKind.TIMESTAMP)
        self._decimals: Mapping[int, Callable[[Any], Any]] = {
            place: reader(schema.fields[place].type) for place in _places(kinds, WireKind.DECIMAL)
        }
        self._misses = self._untried = 0

    def admit(self, text: bytes | msgspec.Raw, latest_ms: int | None) -> ValidatedEvent | None:
        """Return what `EventValidator.admit` would return for a JSON text; None if that validator has to check it."""
        if self._untried:
            self._untried -= 1
            return None
        admitted = self._admit(text, latest_ms)
        if admitted is None:
            self._misses += 1
            self._untried = min(self._misses - 1, _UNTRIED_MAX)
        else:
            self._misses = 0
        return admitted

    def _admit(self, text: bytes | msgspec.Raw, latest_ms: int | None) -> ValidatedEvent | None:
        if len(text) > STRING_LIMIT_BYTES:
            return None
        try:
            values = msgspec.structs.astuple(self._decode(text))
            if self._decimals:
                values = self._with_decimals(values)
            for place in self._times:
                if type(values[place]) is str:
                    values = _put(values, place, read_timestamp(values[place]))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, MisfitError):
            return None
        if _MINUS in bytes(text):
            for place in self._doubles:
                if values[place] == 0.0:
                    # Not -0.0.
                    values = _put(values, place, 0.0)
        time_ms = None if self._time < 0 else values[self._time]
        event_id = None if self._id < 0 else values[self._id]
        if (self._time >= 0 and not is_time(time_ms, latest_ms)) or (self._id >= 0 and event_id is None):
            return None
        return ValidatedEvent(None if event_id is None else str(event_id), time_ms, values)

    def _with_decimals(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        made = list(values)
        for place, read in self._decimals.items():
            number = decode_json(made[place])
            made[place] = None if number is None else read(number)
        return tuple(made)


def _put(values: tuple[Any, ...], place: int, value: Any) -> tuple[Any, ...]:
    """Return the values with another one at a place. They stay a tuple: the garbage collector does not track tuples
    of plain values.
    """
    return (*values[:place], value, *values[place + 1 :])


def _places(kinds: Sequence[WireKind], kind: WireKind) -> list[int]:
    return [place for place, each in enumerate(kinds) if each is kind]
