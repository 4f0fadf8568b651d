"""Validates single events three times as fast as `EventValidator`, if every value has its field's JSON type.

`Intake` calls it. One call of msgspec decodes the text of an event. Other events are left to the other validator.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from railgun.wire.finding import NO_RECORD, RecordFields
from railgun.wire.schema import STRING_LIMIT_BYTES, FieldType, WireKind
from railgun.wire.shapes import RAW, Decode, Leaf, shape_of
from railgun.wire.validator import Roles, ValidatedEvent, is_time
from railgun.wire.values import LONG_MAX, LONG_MIN, MisfitError, decode_json, read_timestamp, reader

# Every integer between these limits has a double of its own, so none is rounded silently.
_EXACT_MIN, _EXACT_MAX = -(2.0**53), 2.0**53
_Long = Annotated[int, msgspec.Meta(ge=LONG_MIN, le=LONG_MAX)]
_SHAPES: dict[WireKind, Leaf] = {
    WireKind.STRING: (str | None, None),
    WireKind.LONG: (_Long | None, None),
    WireKind.DOUBLE: (Annotated[float, msgspec.Meta(gt=_EXACT_MIN, lt=_EXACT_MAX)] | None, None),
    WireKind.BOOLEAN: (bool | None, None),
    WireKind.TIMESTAMP: (_Long | str | None, None),
    WireKind.DECIMAL: RAW,
}
# After k misses in a row, the next k - 1 texts are not tried, up to this many: all may have, say, a double that is
# written as a large integer.
_UNTRIED_MAX = 63
_MINUS = b"-"
# A string of so many characters, of four bytes each, is short enough.
_SURELY_SHORT = STRING_LIMIT_BYTES // 4


class TypedValidator:
    """A faster validator of JSON texts. It gives the same result as `EventValidator`, or None. One thread uses it.

    record: that of the topic which has the next event.
    """

    def __init__(self, roles: Roles) -> None:
        schema = roles.schema
        shape = shape_of(schema, _leaf)
        self._time = -1 if roles.time is None else schema.index(roles.time)
        self._id = -1 if roles.id is None else schema.index(roles.id)
        self._misses = self._untried = 0
        self._skipping: Decode = _nothing if shape is None else _checked(shape.decode)
        # Most events have known keys alone, and are decoded so until one has another.
        self._decode = self._skipping if shape is None or shape.decode_known is None else shape.decode_known
        self._values = tuple if shape is None else shape.values
        self.record = NO_RECORD
        of_record = RecordFields.of(schema.fields)
        if of_record is not None:
            in_document, put = self._values, of_record.put
            self._values = lambda event: put(in_document(event), self.record)
        raw: frozenset[int] = frozenset() if shape is None else shape.raw
        kinds = [None if place in raw else field.type.kind for place, field in enumerate(schema.fields)]
        self._doubles = _places(kinds, WireKind.DOUBLE)
        self._times = _places(kinds, WireKind.TIMESTAMP)
        self._strings = _places(kinds, WireKind.STRING)
        self._raw: Mapping[int, Callable[[Any], Any]] = {
            place: reader(schema.fields[place].type) for place in sorted(raw)
        }

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
        try:
            values = self._values(self._decode(text))
            if self._raw:
                values = self._with_raw(values)
            for place in self._times:
                if type(values[place]) is str:
                    values = _put(values, place, read_timestamp(values[place]))
        except msgspec.ValidationError:
            return self._admit_skipping(text, latest_ms)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, MisfitError):
            return None
        if len(text) > STRING_LIMIT_BYTES and not self._are_short(values):
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

    def _admit_skipping(self, text: bytes | msgspec.Raw, latest_ms: int | None) -> ValidatedEvent | None:
        """Try again, if the text may have an unknown key. If it has, the next ones are decoded so at once."""
        known = self._decode
        if known is self._skipping:
            return None
        self._decode = self._skipping
        admitted = self._admit(text, latest_ms)
        if admitted is None:
            self._decode = known
        return admitted

    def _with_raw(self, values: Sequence[Any]) -> Sequence[Any]:
        made = list(values)
        for place, read in self._raw.items():
            value = decode_json(made[place])
            made[place] = None if value is None else read(value)
        return tuple(made)

    def _are_short(self, values: Sequence[Any]) -> bool:
        """Whether no string is longer than a record can hold."""
        strings = [values[place] for place in self._strings if values[place] is not None]
        return all(len(each) <= _SURELY_SHORT or len(each.encode()) <= STRING_LIMIT_BYTES for each in strings)


def _checked(decode: Decode) -> Decode:
    """Return a function that raises UnicodeDecodeError also for what is skipped."""

    def decoded(text: bytes | msgspec.Raw) -> Any:
        data = bytes(text)
        if not data.isascii():
            data.decode()
        return decode(data)

    return decoded


def _nothing(text: bytes | msgspec.Raw) -> Any:
    """Decode nothing: no struct has these fields."""
    raise msgspec.ValidationError


def _leaf(type_: FieldType) -> Leaf:
    return RAW if type_.unit else _SHAPES[type_.kind]


def _put(values: Sequence[Any], place: int, value: Any) -> tuple[Any, ...]:
    """Return the values with another one at a place. They stay a tuple: the garbage collector does not track tuples
    of plain values.
    """
    return (*values[:place], value, *values[place + 1 :])


def _places(kinds: Sequence[WireKind | None], kind: WireKind) -> list[int]:
    return [place for place, each in enumerate(kinds) if each is kind]
