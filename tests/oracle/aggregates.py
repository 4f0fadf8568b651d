"""The aggregators: a result from the values of a window, nulls left out, in order of time, then offset."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tests.oracle.errors import QueryRefused
from tests.oracle.exact import (
    SMALLEST_DOUBLE,
    double_to_units,
    fraction_to_double,
    normalised,
    rounded_half_away,
    variance,
)
from tests.oracle.types import DOUBLE, LONG, Type, Value, decimal
from tests.oracle.values import Result, to_decimal

_NUMERIC_ONLY = ("sum", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop")


@dataclass(frozen=True)
class Aggregate:
    """An aggregator over an argument of a type; `argument` None is the `*` of `count(*)`."""

    name: str
    argument: Type | None

    def __post_init__(self) -> None:
        if self.argument is None:
            return
        if self.argument.kind == "null" or (self.name in _NUMERIC_ONLY and not self.argument.numeric):
            raise QueryRefused(f"{self.name} takes no {self.argument}")

    @property
    def type(self) -> Type:
        """The type of its results as an expression reads them."""
        if self.name in ("count", "count_distinct"):
            return LONG
        assert self.argument is not None
        if self.name not in _NUMERIC_ONLY:
            return self.argument
        if self.argument.kind == "decimal" and self.name in ("sum", "avg"):
            return decimal(self.argument.scale + (4 if self.name == "avg" else 0))
        return LONG if (self.name, self.argument) == ("sum", LONG) else DOUBLE

    @property
    def unit(self) -> Fraction:
        """What sums count: 1, a decimal's last digit, or the least double; values are whole numbers of it."""
        if self.argument is not None and self.argument.kind == "decimal":
            return Fraction(1, 10**self.argument.scale)
        if self.argument is not None and self.argument.kind == "double":
            return SMALLEST_DOUBLE
        return Fraction(1)

    def prepare(self, value: Value) -> Any:
        """What `result` wants to have of a non-null value: computed once for each event, for speed alone."""
        if self.name not in _NUMERIC_ONLY:
            return value
        if isinstance(value, float):
            units = double_to_units(value)
        else:
            units = int(Fraction(value or 0) / self.unit)
        return (units, units * units)

    def result(self, prepared: Sequence[Any]) -> Result:
        """The aggregate of prepared values in order of time, then offset."""
        if self.name in ("count", "count_distinct"):
            return len(prepared) if self.name == "count" else len(set(prepared))
        if self.name in _NUMERIC_ONLY:
            return self._of_sums(prepared)
        chosen = _chosen(self.name, prepared)
        if self.argument is not None and self.argument.kind == "decimal" and chosen is not None:
            return to_decimal(chosen, self.argument.scale)
        return chosen  # type: ignore[no-any-return]

    def _of_sums(self, prepared: Sequence[tuple[int, int]]) -> Result:
        if not prepared:
            return None
        total = sum(units for units, _ in prepared)
        if self.name == "sum":
            return self._sum(total)
        if self.name == "avg":
            return self._average(total, len(prepared))
        squares = sum(square for _, square in prepared)
        value = variance(len(prepared), total, squares, self.unit, sample=self.name.endswith("_samp"))
        return value if value is None or self.name.startswith("var") else math.sqrt(value)

    def _sum(self, total: int) -> Result:
        assert self.argument is not None
        if self.argument.kind == "long":
            return total
        if self.argument.kind == "decimal":
            return to_decimal(total * self.unit, self.argument.scale)
        return fraction_to_double(total * self.unit)

    def _average(self, total: int, count: int) -> Result:
        assert self.argument is not None
        if self.argument.kind == "decimal":
            scale = self.argument.scale + 4
            return to_decimal(Fraction(rounded_half_away(Fraction(total * 10**4, count)), 10**scale), scale)
        as_double = fraction_to_double(total * self.unit)
        return None if as_double is None else normalised(as_double / count)


def _chosen(name: str, values: Sequence[Any]) -> Any:
    """The one value that min, max, first, last or prev names; None where there is none."""
    if len(values) < (2 if name == "prev" else 1):
        return None
    if name in ("min", "max"):
        return (min if name == "min" else max)(values, key=_order)
    return values[{"first": 0, "last": -1, "prev": -2}[name]]


def _order(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value
