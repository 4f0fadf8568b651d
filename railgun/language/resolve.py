"""Makes metrics, named and typed, from a query over a stream's fields. Metrics of equal canonical text share state."""

import dataclasses
import hashlib
import re
from collections.abc import Container
from dataclasses import dataclass

from railgun.language import ast
from railgun.language.ast import Aggregator
from railgun.language.duration import format_duration
from railgun.language.errors import OffsetError, nearest
from railgun.language.inference import Inference
from railgun.language.limits import NAME_LIMIT, SIZE_LIMIT, TYPED_DEPTH_LIMIT
from railgun.language.printer import print_clauses, print_expression, print_name
from railgun.language.reading import names_in, zone_names_in
from railgun.language.remedies import of_conversion
from railgun.language.typed import Fields, TypedExpression, fields_of, measured, zones_of
from railgun.language.types import DOUBLE, INTEGER128, LONG, RESULT_DIGITS, Kind, Type, decimal
from railgun.language.zones import Zone, Zones, is_outdated, pinned_zone

_DIGEST_LENGTH = 8
# Words for operators in names, so that `amount > 0` and `amount < 0` get different names.
_SPOKEN = {
    "<>": "ne",
    "<=": "le",
    ">=": "ge",
    "<": "lt",
    ">": "gt",
    "=": "eq",
    "+": "plus",
    "*": "times",
    "/": "div",
    "%": "mod",
    "-": "minus",
    "||": "concat",
}
_OPERATOR = re.compile("|".join(map(re.escape, _SPOKEN)))
_NO_WORD = re.compile(r"[^a-z0-9]+")


def metric_name(
    aggregator: ast.Aggregator,
    argument: str | None,
    where: str | None,
    group_by: tuple[str, ...],
    window: str,
    canonical: str,
) -> str:
    """The name of a metric without AS, as in `sum_amount_where_amount_gt_0_by_card_sliding_7d`.

    argument, where: canonical texts.
    window: the result of `window_name`.
    canonical: the metric's text. A name longer than 63 characters is cut and ends in eight hexadecimal digits of the
    SHA-256 of this text.
    """
    parts = [str(aggregator)]
    if argument is not None:
        parts.append(argument)
    if where is not None:
        parts += ["where", where]
    if group_by:
        parts += ["by", *group_by]
    parts.append(window)
    name = "_".join(word for part in parts if (word := _words(part)))
    if len(name) <= NAME_LIMIT:
        return name
    digest = hashlib.sha256(canonical.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{name[: NAME_LIMIT - _DIGEST_LENGTH - 1].rstrip('_')}_{digest}"


def window_name(window: ast.Window, *, excludes_current: bool) -> str:
    """A window in a metric's name, as in `sliding_5m_delayed_1h_exclude_current`."""
    size = "" if window.size_ms is None else f"_{format_duration(window.size_ms)}"
    delay = f"_delayed_{format_duration(window.delay_ms)}" if window.delay_ms else ""
    return f"{window.kind}{size}{delay}{'_exclude_current' if excludes_current else ''}"


def _words(text: str) -> str:
    spoken = _OPERATOR.sub(lambda match: f" {_SPOKEN[match[0]]} ", text)
    return _NO_WORD.sub("_", spoken.lower()).strip("_")


# The number of digits behind the point that an average of decimals has more than its argument.
_AVERAGE_DIGITS = 4
_COUNTS = (Aggregator.COUNT, Aggregator.COUNT_DISTINCT)
_ORDERED = (Aggregator.MIN, Aggregator.MAX, Aggregator.FIRST, Aggregator.LAST, Aggregator.PREV)
# Replies have such columns: `late_card`, `duplicate_card`.
_RESERVED_PREFIXES = ("late_", "duplicate_")


@dataclass(frozen=True, slots=True)
class ResolvedMetric:
    """One metric, checked and typed.

    argument: None only for `count(*)`.
    predicate: a boolean expression; None if every event counts.
    argument_text, predicate_text: the canonical texts of argument and predicate, for people.
    group_by: field names, sorted, each once, because the order written does not matter.
    keys: the values of these fields.
    names: the names of fields in its text.
    zones: the time zones in its text, ordered by name. Computed fields that it reads may have others.
    excludes_current: whether the window leaves out the event that is answered.
    canonical: the text of the query that makes this metric alone, without its name. Two metrics of one stream with
    equal texts and equal time zones have equal values.
    sql: that text with the metric's name.
    """

    name: str
    stream: str
    aggregator: Aggregator
    argument: TypedExpression | None
    predicate: TypedExpression | None
    group_by: tuple[str, ...]
    window: ast.Window
    excludes_current: bool
    result_type: Type
    canonical: str
    sql: str
    argument_text: str | None
    predicate_text: str | None
    keys: tuple[TypedExpression, ...]
    names: frozenset[str]
    zones: tuple[Zone, ...] = ()

    @property
    def fields(self) -> frozenset[str]:
        """The names of the recorded fields that it reads."""
        return frozenset[str]().union(*map(fields_of, self._expressions))

    @property
    def outdated_zones(self) -> tuple[str, ...]:
        """The names of the time zones for which this program now has different tables, of its own or of fields."""
        zones = frozenset[Zone]().union(*map(zones_of, self._expressions))
        return tuple(sorted({zone.name for zone in zones if is_outdated(zone)}))

    @property
    def _expressions(self) -> tuple[TypedExpression, ...]:
        return (*(each for each in (self.argument, self.predicate) if each is not None), *self.keys)


def result_type(aggregator: Aggregator, argument: Type | None) -> Type | None:
    """Return the type of an aggregator's result for an argument's type; None if it does not take that type."""
    if aggregator in _COUNTS:
        return LONG
    if argument is None:
        return None
    if aggregator in _ORDERED:
        return argument
    if not argument.is_numeric:
        return None
    if aggregator is Aggregator.SUM:
        if argument.kind is Kind.DECIMAL:
            return decimal(RESULT_DIGITS, argument.scale)
        return INTEGER128 if argument == LONG else DOUBLE
    if aggregator is Aggregator.AVG and argument.kind is Kind.DECIMAL:
        return decimal(RESULT_DIGITS, argument.scale + _AVERAGE_DIGITS)
    return DOUBLE


def resolve(
    query: ast.Query,
    fields: Fields,
    stream: str,
    zones: Zones = pinned_zone,
    metrics: Container[str] = (),
) -> list[ResolvedMetric]:
    """The metrics of a query, one per select item, in the order written.

    fields: the fields of the stream.
    stream: the stream's name, which the query has to give.
    zones: finds the time zone of a name. A registered metric keeps the zones that it was registered with.
    metrics: the names of the stream's metrics, for the error where the query reads one.

    Raises QueryError, with the place, if the query does not fit the stream.
    """
    try:
        return _Resolver(query, Inference(fields, stream, zones, metrics)).metrics()
    except OffsetError as error:
        raise error.in_text(query.text) from None


def check_stream(written: ast.StreamName, stream: str) -> None:
    """Raise OffsetError if FROM names another stream."""
    if written.name != stream:
        near = nearest(written.name, [stream])
        hint = f"did you mean {near}?" if near else f"this is stream {stream}"
        raise OffsetError(f"unknown stream {written.name[:80]!r}", written.position, hint)


def check_metric_name(name: str, position: int) -> None:
    """Raise OffsetError if a name given with AS begins like the columns that replies have themselves."""
    for prefix in _RESERVED_PREFIXES:
        if name.startswith(prefix):
            message = f"a metric's name cannot begin with {prefix}: replies use such names themselves"
            raise OffsetError(message, position, "choose a name that does not begin so")


def check_size(typed: TypedExpression, node: ast.Expression) -> None:
    """Raise OffsetError if an expression is too large once the computed fields that it reads are written out."""
    size, depth = measured(typed)
    if size > SIZE_LIMIT or depth > TYPED_DEPTH_LIMIT:
        message = (
            f"an expression too large once computed fields are written out: {size} operations, {depth} deep; at most "
            f"{SIZE_LIMIT}, {TYPED_DEPTH_LIMIT} deep"
        )
        raise OffsetError(message, node.position, "read recorded fields in place of computed ones")


@dataclass(frozen=True, slots=True)
class _Condition:
    """The condition of a metric, and the canonical clauses from FROM on of a query with this condition."""

    where: ast.Expression | None
    predicate: TypedExpression | None
    text: str | None
    clauses: str


class _Resolver:
    def __init__(self, query: ast.Query, inference: Inference) -> None:
        self.query = query
        self.stream = inference.stream
        self.inference = inference
        self.keys: tuple[TypedExpression, ...] = ()

    def metrics(self) -> list[ResolvedMetric]:
        check_stream(self.query.stream, self.stream)
        predicate = self._predicate(self.query.where)
        keys = {name.name: self.inference.field(name) for name in self.query.group_by}
        group_by = tuple(sorted(keys))
        self.keys = tuple(keys[name] for name in group_by)
        shared = self._condition(self.query.where, predicate, group_by)
        metrics: dict[str, ResolvedMetric] = {}
        for item in self.query.items:
            metric = self._metric(item, self._of_item(item, shared, group_by), group_by)
            if metric.name in metrics:
                message = f"two metrics are named {metric.name}"
                raise OffsetError(message, item.name_position, "give one of them a name with AS")
            metrics[metric.name] = metric
        return list(metrics.values())

    def _of_item(self, item: ast.SelectItem, shared: _Condition, group_by: tuple[str, ...]) -> _Condition:
        """The condition of one item. `FILTER (WHERE p)` becomes part of WHERE, so that both spellings share state."""
        if item.condition is None:
            return shared
        self._predicate(item.condition)
        both = ast.all_of(self.query.where, item.condition)
        return self._condition(both, self._predicate(both), group_by)

    def _predicate(self, where: ast.Expression | None) -> TypedExpression | None:
        if where is None:
            return None
        predicate = self.inference.predicate(where)
        check_size(predicate, where)
        return predicate

    def _condition(
        self, where: ast.Expression | None, predicate: TypedExpression | None, group_by: tuple[str, ...]
    ) -> _Condition:
        written = tuple(ast.FieldReference(name) for name in group_by)
        clauses = print_clauses(dataclasses.replace(self.query, where=where, group_by=written))
        return _Condition(where, predicate, None if where is None else print_expression(where), clauses)

    def _metric(
        self, item: ast.SelectItem, condition: _Condition, group_by: tuple[str, ...]
    ) -> ResolvedMetric:
        argument = None if item.argument is None else self.inference.infer(item.argument)
        if item.argument is not None and argument is not None:
            check_size(argument, item.argument)
        argument_text = None if item.argument is None else print_expression(item.argument)
        result = self._result_type(item, argument)
        function = f"{item.aggregator}({argument_text or '*'})"
        canonical = f"SELECT {function} {condition.clauses}"
        name = self._name(item, argument_text, condition.text, group_by, canonical)
        read = [each for each in (item.argument, condition.where) if each is not None]
        zone_names = frozenset[str]().union(*map(zone_names_in, read))
        return ResolvedMetric(
            name=name,
            stream=self.stream,
            aggregator=item.aggregator,
            argument=argument,
            predicate=condition.predicate,
            group_by=group_by,
            window=self.query.window,
            excludes_current=self.query.excludes_current,
            result_type=result,
            canonical=canonical,
            sql=f"SELECT {function} AS {print_name(name)} {condition.clauses}",
            argument_text=argument_text,
            predicate_text=condition.text,
            keys=self.keys,
            names=frozenset(group_by).union(*map(names_in, read)),
            zones=tuple(
                zone for name in sorted(zone_names) if (zone := self.inference.zones(name)) is not None
            ),
        )

    def _result_type(self, item: ast.SelectItem, argument: TypedExpression | None) -> Type:
        type_ = None if argument is None else argument.type
        place = item.position if item.argument is None else item.argument.position
        if type_ is not None and type_.kind is Kind.NULL:
            hint = "give it a value with a type; count(*) counts events"
            raise OffsetError(f"{item.aggregator} of nothing but NULL", place, hint)
        result = result_type(item.aggregator, type_)
        if result is None:
            assert type_ is not None, "every aggregator but count has an argument"
            message = f"{item.aggregator} takes long, double or decimal, not {type_}"
            raise OffsetError(message, place, of_conversion(type_, Kind.LONG))
        return result

    def _name(
        self,
        item: ast.SelectItem,
        argument_text: str | None,
        where_text: str | None,
        group_by: tuple[str, ...],
        canonical: str,
    ) -> str:
        if item.name is None:
            window = window_name(self.query.window, excludes_current=self.query.excludes_current)
            return metric_name(item.aggregator, argument_text, where_text, group_by, window, canonical)
        check_metric_name(item.name, item.name_position)
        return item.name
