"""The door for single JSON texts that are all right: read by their fields' types at once, a third of the time."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from railgun.wire.door import Admitted, Roles, is_time
from railgun.wire.schema import STRING_LIMIT_BYTES, Kind
from railgun.wire.values import LONG_MAX, LONG_MIN, MisfitError, decode_json, read_timestamp, reader

# Every integer between them has a double of its own, so that none is rounded in silence.
_EXACT_MIN, _EXACT_MAX = -(2.0**53), 2.0**53
_Long = Annotated[int, msgspec.Meta(ge=LONG_MIN, le=LONG_MAX)]
_SHAPES: dict[Kind, tuple[Any, Any]] = {
    Kind.STRING: (str | None, None),
    Kind.LONG: (_Long | None, None),
    Kind.DOUBLE: (Annotated[float, msgspec.Meta(gt=_EXACT_MIN, lt=_EXACT_MAX)] | None, None),
    Kind.BOOLEAN: (bool | None, None),
    Kind.TIMESTAMP: (_Long | str | None, None),
    Kind.DECIMAL: (msgspec.Raw, msgspec.Raw(b"null")),
}
# After so many misses in a row, so many texts go by untried: where all have a field too many, trying is in vain.
_UNTRIED_MAX = 63
_MINUS = b"-"


class TypedDoor:
    """Takes what `Door` takes and makes the same of it, or leaves it to `Door`. Not to be shared between threads."""

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
        self._doubles = _places(kinds, Kind.DOUBLE)
        self._times = _places(kinds, Kind.TIMESTAMP)
        self._decimals: Mapping[int, Callable[[Any], Any]] = {
            place: reader(schema.fields[place].type) for place in _places(kinds, Kind.DECIMAL)
        }
        self._misses = self._untried = 0

    def admit(self, text: bytes | msgspec.Raw, latest_ms: int | None) -> Admitted | None:
        """What `Door.admit` gives for a JSON text; None where that one has to look at it."""
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

    def _admit(self, text: bytes | msgspec.Raw, latest_ms: int | None) -> Admitted | None:
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
        return Admitted(None if event_id is None else str(event_id), time_ms, values)

    def _with_decimals(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        made = list(values)
        for place, read in self._decimals.items():
            number = decode_json(made[place])
            made[place] = None if number is None else read(number)
        return tuple(made)


def _put(values: tuple[Any, ...], place: int, value: Any) -> tuple[Any, ...]:
    """Tuples of plain values are nothing to look into for who collects garbage; lists are."""
    return (*values[:place], value, *values[place + 1 :])


def _places(kinds: Sequence[Kind], kind: Kind) -> list[int]:
    return [place for place, each in enumerate(kinds) if each is kind]
