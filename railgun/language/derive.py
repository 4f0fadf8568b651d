"""Makes derived metrics, named and typed, from the items of a DERIVE over a stream's fields and metrics."""

from collections.abc import Mapping
from dataclasses import dataclass

from railgun.language import ast
from railgun.language.errors import OffsetError, nearest
from railgun.language.inference import Inference
from railgun.language.limits import SIZE_LIMIT, TYPED_DEPTH_LIMIT
from railgun.language.printer import print_expression, print_name
from railgun.language.reading import names_in, zone_names_in
from railgun.language.resolve import check_metric_name, check_stream
from railgun.language.typed import Field, Fields, TypedExpression, fields_of, measured, types_of
from railgun.language.types import DECIMAL_DIGITS, LONG, Kind, Type, decimal
from railgun.language.zones import Zone, Zones, is_outdated, pinned_zone


@dataclass(frozen=True, slots=True)
class ResolvedDerived:
    """One derived metric, checked and typed.

    expression: reads fields and metrics alone. Derived metrics in the text are replaced by their expressions.
    fields, operands: the recorded fields and the metrics that the expression reads, each with the type as which it is
        read.
    event_fields: the fields that it names, itself or through derived metrics, recorded or computed.
    names, zones: the names and the time zones in its own text.
    text: the canonical text of the item's expression.
    sql: the canonical text of a DERIVE that makes this metric alone.
    """

    name: str
    stream: str
    expression: TypedExpression
    fields: Mapping[str, Type]
    operands: Mapping[str, Type]
    event_fields: frozenset[str]
    names: frozenset[str]
    zones: tuple[Zone, ...]
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
    fields: Fields,
    known: Known,
    stream: str,
    zones: Zones = pinned_zone,
) -> ResolvedDerived:
    """The derived metric that an item of a DERIVE makes.

    fields: the stream's fields.
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
    item: ast.DerivedItem, fields: Fields, known: Known, stream: str, zones: Zones
) -> ResolvedDerived:
    inference = _OperandInference(fields, known, stream, zones)
    expression = inference.infer(item.expression)
    if expression.type.kind is Kind.NULL:
        raise OffsetError(f"{item.name} is nothing but NULL", item.position, "give it a value with a type")
    size, depth = measured(expression)
    if size > SIZE_LIMIT or depth > TYPED_DEPTH_LIMIT:
        what = f"once the derived metrics that it reads are written out: {size} operations, {depth} deep"
        limits = f"at most {SIZE_LIMIT}, {TYPED_DEPTH_LIMIT} deep; read metrics in place of derived ones"
        raise OffsetError(f"{item.name} is too large {what}", item.position, limits)
    text = print_expression(item.expression)
    return ResolvedDerived(
        name=item.name,
        stream=stream,
        expression=expression,
        fields=inference.read,
        operands=inference.operands,
        event_fields=frozenset(inference.named),
        names=names_in(item.expression),
        zones=tuple(
            zone for name in sorted(zone_names_in(item.expression)) if (zone := zones(name)) is not None
        ),
        text=text,
        sql=f"DERIVE {text} AS {print_name(item.name)} FROM {print_name(stream)}",
    )


def field_as_derived(name: str, fields: Fields, stream: str) -> ResolvedDerived:
    """Return a field of a stream, recorded or computed, as a derived metric of its name. No statement makes it.

    fields: all of the stream.
    """
    field, types = fields[name], types_of(fields)
    expression = Field(field, name) if isinstance(field, Type) else field
    return ResolvedDerived(
        name=name,
        stream=stream,
        expression=expression,
        fields={each: types[each] for each in sorted(fields_of(expression))},
        operands={},
        event_fields=frozenset((name,)),
        names=frozenset((name,)),
        zones=(),
        text=name,
        sql="",
    )


class _OperandInference(Inference):
    """Types expressions over fields and metrics.

    read, operands: the recorded fields and the metrics that were read so far.
    named: the names of fields, recorded or computed, that were read so far.
    """

    def __init__(self, fields: Fields, known: Known, stream: str, zones: Zones) -> None:
        super().__init__(fields, stream, zones)
        self._known = known
        self.read: dict[str, Type] = {}
        self.operands: dict[str, Type] = {}
        self.named: set[str] = set()
        self._recorded = types_of(fields)

    def infer(self, node: ast.Expression) -> TypedExpression:
        if not isinstance(node, ast.FieldReference):
            return super().infer(node)
        if node.name not in self._known:
            field = self.field(node)
            self.named.add(node.name)
            self.read |= {name: self._recorded[name] for name in sorted(fields_of(field))}
            return field
        if node.name in self.fields:
            message = f"{node.name} is both a field and a metric of stream {self.stream}"
            raise OffsetError(message, node.position, "give the metric another name")
        known = self._known[node.name]
        if isinstance(known, ResolvedDerived):
            self.named |= known.event_fields
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
