"""The types of fields and of expressions, and the Python values that stand for theirs inside the oracle."""

import re
from dataclasses import dataclass
from fractions import Fraction

from tests.oracle.errors import DefinitionRefused

# long and timestamp: int; double: float, never -0.0; decimal: Fraction, a multiple of 10^-scale;
# string: str; boolean: bool; null: None.
Value = int | float | Fraction | str | bool | None
Row = dict[str, Value]

LONG_MIN: int = -(2**63)
LONG_MAX: int = 2**63 - 1
DECIMAL_DIGITS = 18


@dataclass(frozen=True)
class Type:
    """A type; `scale` and `precision` speak of decimals only. `null` is the type of the bare literal NULL.

    The precision bounds what a field takes in; inside expressions every decimal may have 18 digits,
    so there it is always 18 and two decimals of one scale are of one type.
    """

    kind: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.kind == "decimal" else self.kind

    @property
    def numeric(self) -> bool:
        return self.kind in ("long", "double", "decimal")


STRING = Type("string")
LONG = Type("long")
DOUBLE = Type("double")
BOOLEAN = Type("boolean")
TIMESTAMP = Type("timestamp")
NULL = Type("null")


def decimal(scale: int) -> Type:
    """The type of a decimal expression with `scale` digits after the point."""
    return Type("decimal", DECIMAL_DIGITS, scale)


def parse_type(text: str) -> Type:
    """A field's type as the definitions write it; raises DefinitionRefused."""
    if text in ("string", "long", "double", "boolean", "timestamp"):
        return Type(text)
    match = re.fullmatch(r"decimal\(\s*([0-9]+)\s*,\s*([0-9]+)\s*\)", text)
    if not match:
        raise DefinitionRefused(f"unknown type {text!r}")
    precision, scale = int(match[1]), int(match[2])
    if not (1 <= precision <= DECIMAL_DIGITS and scale <= precision):
        raise DefinitionRefused(f"{text}: 1 <= precision <= {DECIMAL_DIGITS}, 0 <= scale <= precision")
    return Type("decimal", precision, scale)
