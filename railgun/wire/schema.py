"""Field types and schemas of records: an ordered list of typed fields under a version number."""

from dataclasses import dataclass, field
from enum import IntEnum

from railgun.wire.path import Path

PRECISION_LIMIT = 18
STRING_LIMIT_BYTES = 65_535  # what state can hold: its lengths have 16 bits
FIELDS_LIMIT = 4096
VERSION_LIMIT = 1 << 16
# The least int64 stands for minus infinity, which is the clock before the first event. No event has that time.
EVENT_TIME_MIN_MS = -(1 << 63) + 1


class WireKind(IntEnum):
    """The kinds of values that a field can hold. Only the kernels use these numbers; records carry
    msgpack's types.
    """

    STRING = 1
    LONG = 2
    DOUBLE = 3
    BOOLEAN = 4
    DECIMAL = 5
    TIMESTAMP = 6


class FieldTypeError(ValueError):
    """A decimal type is outside its limits. The message says which they are."""


@dataclass(frozen=True, slots=True)
class FieldType:
    """A field's type. `precision` and `scale` are 0 except for decimals.

    unit: what numbers count that come in as times: `s`, `ms`, `us` or `ns`; empty if only whole milliseconds are taken.
        Records have milliseconds, so the types in their schemas say no unit.
    """

    kind: WireKind
    precision: int = 0
    scale: int = 0
    unit: str = ""

    def __str__(self) -> str:
        if self.kind is WireKind.DECIMAL:
            return f"decimal({self.precision},{self.scale})"
        return self.kind.name.lower()

    @property
    def unscaled_limit(self) -> int:
        """The greatest absolute value of the 64-bit word: 10^precision - 1 for decimals, otherwise 2^63 - 1."""
        return int(10**self.precision - 1) if self.kind is WireKind.DECIMAL else (1 << 63) - 1


STRING = FieldType(WireKind.STRING)
LONG = FieldType(WireKind.LONG)
DOUBLE = FieldType(WireKind.DOUBLE)
BOOLEAN = FieldType(WireKind.BOOLEAN)
TIMESTAMP = FieldType(WireKind.TIMESTAMP)


def decimal_type(precision: int, scale: int) -> FieldType:
    """`decimal(precision,scale)`. Raises FieldTypeError outside 1 <= p <= 18, 0 <= s <= p."""
    if not 1 <= precision <= PRECISION_LIMIT:
        raise FieldTypeError(f"a decimal has 1 to {PRECISION_LIMIT} digits, not {precision}")
    if not 0 <= scale <= precision:
        raise FieldTypeError(
            f"a decimal({precision},s) has 0 to {precision} digits after the point, not {scale}"
        )
    return FieldType(WireKind.DECIMAL, precision, scale)


@dataclass(frozen=True, slots=True)
class Field:
    """A named, typed field of a schema.

    path: where an event that comes in has the field; None: under its name. Records have fields and no paths.
    """

    name: str
    type: FieldType
    path: Path | None = None

    @property
    def place(self) -> str:
        """What errors about an event call the field: where the sender has put it."""
        return self.name if self.path is None else self.path.text


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of a stream's events under one version; the order is the order of values in a record.

    has_paths: whether any field is elsewhere than under its name.
    reads_records: whether any field is read of the record that an event comes in, not of the event.
    """

    version: int
    fields: tuple[Field, ...]
    # Each batch asks for these.
    has_paths: bool = field(init=False, repr=False, compare=False)
    reads_records: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.version < VERSION_LIMIT:
            raise ValueError(f"schema version {self.version} is not in 0..{VERSION_LIMIT - 1}")
        if len(self.fields) > FIELDS_LIMIT:
            raise ValueError(f"a schema has at most {FIELDS_LIMIT} fields, not {len(self.fields)}")
        if len({each.name for each in self.fields}) != len(self.fields):
            raise ValueError(f"schema version {self.version} names a field twice")
        paths = [each.path for each in self.fields if each.path is not None]
        object.__setattr__(self, "has_paths", bool(paths))
        object.__setattr__(self, "reads_records", any(path.of_record for path in paths))

    def index(self, name: str) -> int:
        """Return the index of a field among the values of a record; -1 if the schema lacks it."""
        for i, each in enumerate(self.fields):
            if each.name == name:
                return i
        return -1
