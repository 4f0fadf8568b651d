"""Derived metrics: expressions over the metrics of a stream and the fields of the event that is answered."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tests.oracle.aggregates import Aggregate
from tests.oracle.errors import QueryRefused
from tests.oracle.expressions import evaluate
from tests.oracle.inference import Typed, infer
from tests.oracle.syntax import Derived, Field, Metric
from tests.oracle.types import DECIMAL_DIGITS, LONG_MAX, LONG_MIN, Type, Value
from tests.oracle.values import Result, to_decimal


def names_in(node: Any) -> Iterator[str]:
    """The names that an expression reads, as often as it does."""
    if isinstance(node, Field):
        yield node.name
    elif isinstance(node, tuple):
        for each in node:
            yield from names_in(each)
    elif is_dataclass(node):
        for member in fields(node):
            yield from names_in(getattr(node, member.name))


def metric_type(metric: Metric, declared: Mapping[str, Type]) -> Type:
    """The type of a metric's results, as an expression reads them."""
    argument = None if metric.argument is None else infer(metric.argument, declared).type
    return Aggregate(metric.aggregator, argument).type


def as_operand(result: Result, type_: Type) -> Value:
    """A metric's result as an expression reads it; null where its type cannot hold it."""
    if isinstance(result, Decimal):
        exact = Fraction(result)
        return exact if abs(exact) * 10**type_.scale < 10**DECIMAL_DIGITS else None
    if type_.kind == "long" and isinstance(result, int):
        return result if LONG_MIN <= result <= LONG_MAX else None
    return result


class DerivedMetric:
    """One derived metric of a stream as it is registered.

    operands: the metrics that it reads, itself or through others.  reads_fields: whether it or one of those that it
    reads reads a field of the event.  Raises QueryRefused.
    """

    def __init__(
        self,
        definition: Derived,
        declared: Mapping[str, Type],
        metrics: Mapping[str, Metric],
        derived: Mapping[str, "DerivedMetric"],
    ) -> None:
        self.definition = definition
        read = set(names_in(definition.expression))
        for name in read & declared.keys() & {*metrics, *derived}:
            raise QueryRefused(f"{name!r} is a field and a metric")
        self._metrics = {name: metric_type(metrics[name], declared) for name in read & metrics.keys()}
        self._derived = {name: derived[name] for name in read & derived.keys()}
        for name, type_ in self._metrics.items():
            if type_.kind == "decimal" and type_.scale > DECIMAL_DIGITS:
                raise QueryRefused(f"{name!r} has {type_.scale} digits after the point")
        types = {name: each.typed.type for name, each in self._derived.items()}
        self.typed: Typed = infer(definition.expression, {**declared, **self._metrics, **types})
        if self.typed.type.kind == "null":
            raise QueryRefused(f"{definition.name} of nothing but NULL")
        self.reads_fields: bool = bool(read & declared.keys()) or any(
            each.reads_fields for each in self._derived.values()
        )
        through = (each.operands for each in self._derived.values())
        self.operands: frozenset[str] = frozenset(self._metrics).union(*through)

    def value(self, row: Mapping[str, Value], results: Mapping[str, Result]) -> Value:
        """Its value for an event with these fields. results: of the metrics."""
        operands = {name: as_operand(results[name], type_) for name, type_ in self._metrics.items()}
        others = {name: each.value(row, results) for name, each in self._derived.items()}
        return evaluate(self.typed, {**row, **operands, **others})

    def result(self, row: Mapping[str, Value], results: Mapping[str, Result]) -> Result:
        """The same as a reply has it."""
        value = self.value(row, results)
        return to_decimal(value, self.typed.type.scale) if isinstance(value, Fraction) else value
