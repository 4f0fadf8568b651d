"""The types of fields, expressions and results."""

import re
from dataclasses import dataclass
from enum import StrEnum

from railgun.language.errors import nearest

# The most digits of a decimal field or expression. Sums and averages of decimals have up to 38.
DECIMAL_DIGITS = 18
RESULT_DIGITS = 38


class Kind(StrEnum):
    STRING = "string"
    LONG = "long"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    DECIMAL = "decimal"
    TIMESTAMP = "timestamp"
    INTEGER128 = "integer128"
    NULL = "null"


@dataclass(frozen=True, slots=True)
class Type:
    """A type. `precision` and `scale` are those of a decimal, and 0 for other types.

    Only sums of longs have the type `integer128`, and only a bare NULL has the type `null`.
    """

    kind: Kind
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.kind is Kind.DECIMAL else str(self.kind)

    @property
    def is_numeric(self) -> bool:
        """Whether it takes part in arithmetic: long, double, decimal."""
        return self.kind in (Kind.LONG, Kind.DOUBLE, Kind.DECIMAL)


STRING = Type(Kind.STRING)
LONG = Type(Kind.LONG)
DOUBLE = Type(Kind.DOUBLE)
BOOLEAN = Type(Kind.BOOLEAN)
TIMESTAMP = Type(Kind.TIMESTAMP)
INTEGER128 = Type(Kind.INTEGER128)
NULL = Type(Kind.NULL)

_PLAIN = {str(type_): type_ for type_ in (STRING, LONG, DOUBLE, BOOLEAN, TIMESTAMP)}
_DECIMAL = re.compile(r"decimal\(\s*([0-9]{1,3})\s*,\s*([0-9]{1,3})\s*\)", re.ASCII)


class TypeTextError(ValueError):
    """Text that names no type.

    message: one sentence. hint: a list of the types, or the rule that the text breaks.
    """

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(f"{message}; {hint}")
        self.message = message
        self.hint = hint


def decimal(precision: int, scale: int) -> Type:
    return Type(Kind.DECIMAL, precision, scale)


def parse_type(text: str) -> Type:
    """A field's type as definitions write it: `string`, `decimal(12,2)` ... Raises TypeTextError."""
    found = _PLAIN.get(text)
    if found is not None:
        return found
    match = _DECIMAL.fullmatch(text)
    if match is None:
        near = nearest(text, [*_PLAIN, "decimal(p,s)"])
        meant = f"did you mean {near}? " if near else ""
        listed = f"types are {', '.join(_PLAIN)} and decimal(p,s)"
        raise TypeTextError(f"unknown type {text[:40]!r}", meant + listed)
    precision, scale = int(match[1]), int(match[2])
    if not (1 <= precision <= DECIMAL_DIGITS and scale <= precision):
        raise TypeTextError(
            f"there is no type {text[:40]!r}", f"1 ≤ precision ≤ {DECIMAL_DIGITS} and scale ≤ precision"
        )
    return decimal(precision, scale)
