"""Makes derived metrics, named and typed, from the items of a DERIVE over a stream's fields and metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from railgun.language import ast
from railgun.language.errors import OffsetError, nearest
from railgun.language.inference import Inference
from railgun.language.limits import DEPTH_LIMIT, SIZE_LIMIT
from railgun.language.printer import print_expression, print_name
from railgun.language.resolve import check_metric_name, check_stream
from railgun.language.typed import Apply, Field, TypedExpression
from railgun.language.types import DECIMAL_DIGITS, LONG, Kind, Type, decimal
from railgun.language.zones import Zone, Zones, is_outdated, pinned_zone

# The depth of a typed tree, to which conversions and BETWEEN add levels that are not written.
_DEPTH_MAX = 3 * DEPTH_LIMIT


@dataclass(frozen=True, slots=True)
class ResolvedDerived:
    """One derived metric, checked and typed.

    expression: reads fields and metrics alone. Derived metrics in the text are replaced by their expressions.
    fields, operands: the fields and the metrics that the expression reads, each with the type as which it is read.
    names, zones: the names and the time zones in its own text.
    size, depth: the number of nodes of the expression, and how deep it is.
    text: the canonical text of the item's expression.
    sql: the canonical text of a DERIVE that makes this metric alone.
    """

    name: str
    stream: str
    expression: TypedExpression
    fields: Mapping[str, Type]
    operands: Mapping[str, Type]
    names: frozenset[str]
    zones: tuple[Zone, ...]
    size: int
    depth: int
    text: str
    sql: str

    @property
    def outdated_zones(self) -> tuple[str, ...]:
        """The names of its time zones for which this program now has different tables."""
        return tuple(zone.name for zone in self.zones if is_outdated(zone))

    @property
    def result_type(self) -> Type:
        """The type of its results."""
        return self.expression.type


Known = Mapping[str, Type | ResolvedDerived]
"""The metrics of a stream by name: the type of a metric's results, or the derived metric."""


def operand_type(result: Type) -> Type | None:
    """Return the type as which expressions read a metric's results; None if they cannot read them."""
    if result.kind is Kind.INTEGER128:
        return LONG
    if result.kind is not Kind.DECIMAL:
        return result
    return None if result.scale > DECIMAL_DIGITS else decimal(DECIMAL_DIGITS, result.scale)


def resolve_derived(
    item: ast.DerivedItem,
    derivation: ast.Derivation,
    fields: Mapping[str, Type],
    known: Known,
    stream: str,
    zones: Zones = pinned_zone,
) -> ResolvedDerived:
    """The derived metric that an item of a DERIVE makes.

    fields: the stream's fields with their types.
    known: the metrics that the stream has already.
    stream: the stream's name.
    zones: finds the time zone of a name.

    Raises QueryError, with the place, if the item does not fit the stream.
    """
    try:
        check_stream(derivation.stream, stream)
        check_metric_name(item.name, item.name_position)
        return _resolve(item, fields, known, stream, zones)
    except OffsetError as error:
        raise error.in_text(derivation.text) from None


def _resolve(
    item: ast.DerivedItem, fields: Mapping[str, Type], known: Known, stream: str, zones: Zones
) -> ResolvedDerived:
    inference = _OperandInference(fields, known, stream, zones)
    expression = inference.infer(item.expression)
    if expression.type.kind is Kind.NULL:
        raise OffsetError(f"{item.name} is nothing but NULL", item.position, "give it a value with a type")
    size, depth = _measure(expression, {id(each.expression): each for each in inference.derived})
    if size > SIZE_LIMIT or depth > _DEPTH_MAX:
        what = f"once the derived metrics that it reads are written out: {size} operations, {depth} deep"
        limits = f"at most {SIZE_LIMIT}, {_DEPTH_MAX} deep; read metrics in place of derived ones"
        raise OffsetError(f"{item.name} is too large {what}", item.position, limits)
    text = print_expression(item.expression)
    return ResolvedDerived(
        name=item.name,
        stream=stream,
        expression=expression,
        fields=inference.read,
        operands=inference.operands,
        names=names_in(item.expression),
        zones=tuple(
            zone for name in sorted(_zone_names(item.expression)) if (zone := zones(name)) is not None
        ),
        size=size,
        depth=depth,
        text=text,
        sql=f"DERIVE {text} AS {print_name(item.name)} FROM {print_name(stream)}",
    )


def names_in(node: ast.Node) -> frozenset[str]:
    """The names that an expression reads."""
    if isinstance(node, ast.FieldReference):
        return frozenset((node.name,))
    return frozenset().union(*map(names_in, ast.children(node)))


def _zone_names(node: ast.Node) -> frozenset[str]:
    """The names of the time zones in an expression."""
    own = [node.zone] if isinstance(node, ast.Call) and node.zone is not None else []
    return frozenset(own).union(*map(_zone_names, ast.children(node)))


def operands_first(items: Mapping[str, ast.DerivedItem]) -> list[str]:
    """The names of items in their order, but each behind the items that it reads. Raises CircleError."""
    read = {
        name: [each for each in items if each in names_in(item.expression)] for name, item in items.items()
    }
    try:
        TopologicalSorter(read).prepare()
    except CycleError as error:
        circle = error.args[1][::-1]
        raise CircleError(circle, _place_of(circle[1], items[circle[0]].expression)) from None
    found: dict[str, None] = {}
    # A stack: an item leaves it once all items that it reads have left.
    waiting = list(items)[::-1]
    while waiting:
        unread = [each for each in read[waiting[-1]] if each not in found]
        if unread:
            waiting += reversed(unread)
        else:
            found[waiting.pop()] = None
    return list(found)


class CircleError(ValueError):
    """Derived metrics read each other in a circle.

    circle: their names. Each reads the next one, and the last name is the first one again.
    offset: the place in the statement's text where the first one reads the next one.
    """

    def __init__(self, circle: Sequence[str], offset: int) -> None:
        super().__init__(f"derived metrics in a circle: {' reads '.join(circle)}")
        self.circle = circle
        self.offset = offset


def _place_of(name: str, node: ast.Node) -> int:
    """The offset of the first place where an expression that reads a name does so."""
    while not isinstance(node, ast.FieldReference):
        node = next(each for each in ast.children(node) if name in names_in(each))
    return node.position


class _OperandInference(Inference):
    """Types expressions over fields and metrics.

    read, operands, derived: the fields, metrics and derived metrics that were read so far.
    """

    def __init__(self, fields: Mapping[str, Type], known: Known, stream: str, zones: Zones) -> None:
        super().__init__(fields, stream, zones)
        self._known = known
        self.read: dict[str, Type] = {}
        self.operands: dict[str, Type] = {}
        self.derived: list[ResolvedDerived] = []

    def infer(self, node: ast.Expression) -> TypedExpression:
        if not isinstance(node, ast.FieldReference):
            return super().infer(node)
        if node.name not in self._known:
            field = self.field(node)
            self.read[node.name] = field.type
            return field
        if node.name in self.fields:
            message = f"{node.name} is both a field and a metric of stream {self.stream}"
            raise OffsetError(message, node.position, "give the metric another name")
        known = self._known[node.name]
        if isinstance(known, ResolvedDerived):
            self.derived.append(known)
            self.read |= known.fields
            self.operands |= known.operands
            return known.expression
        type_ = operand_type(known)
        if type_ is None:
            message = (
                f"{node.name} is {known}: a decimal in an expression has at most {DECIMAL_DIGITS} digits"
            )
            raise OffsetError(message, node.position, "aggregate a CAST of fewer digits behind the point")
        self.operands[node.name] = type_
        return Field(type_, node.name)

    def unknown(self, node: ast.FieldReference) -> OffsetError:
        near = nearest(node.name, [*self.fields, *self._known])
        hint = f"did you mean {near}?" if near else f"its metrics are {', '.join(self._known) or 'none yet'}"
        message = f"stream {self.stream} has neither a field nor a metric {node.name[:80]!r}"
        return OffsetError(message, node.position, hint)


def _measure(expression: TypedExpression, known: Mapping[int, ResolvedDerived]) -> tuple[int, int]:
    """(number of nodes of a tree, its depth). known: derived metrics by the identity of their expressions."""
    if id(expression) in known:
        return known[id(expression)].size, known[id(expression)].depth
    if not isinstance(expression, Apply):
        return 1, 1
    below = [_measure(each, known) for each in expression.arguments]
    return 1 + sum(size for size, _ in below), 1 + max(depth for _, depth in below)
