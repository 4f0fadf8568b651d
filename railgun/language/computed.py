"""Makes computed fields, typed, from their expressions over recorded fields and over each other."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from railgun.language.errors import OffsetError, QueryError
from railgun.language.inference import Inference
from railgun.language.parser import parse_expression
from railgun.language.printer import print_expression
from railgun.language.reading import names_in, operands_first, zone_names_in
from railgun.language.resolve import check_size
from railgun.language.typed import TypedExpression
from railgun.language.types import Kind, Type
from railgun.language.zones import Zone, Zones


@dataclass(frozen=True, slots=True)
class ComputedField:
    """A field that is not recorded, but computed of recorded ones.

    text: the canonical text of its expression.
    expression: over recorded fields alone. Computed ones in the text are replaced by their expressions.
    names, zones: the names and the time zones in its own text.
    """

    name: str
    text: str
    expression: TypedExpression
    names: frozenset[str]
    zones: tuple[Zone, ...] = ()

    @property
    def type(self) -> Type:
        """The type of its values."""
        return self.expression.type


def resolve_computed(
    texts: Mapping[str, str],
    recorded: Mapping[str, Type],
    stream: str,
    zones_of: Callable[[str], Zones],
) -> list[ComputedField]:
    """The computed fields with these expressions, in their order, but each behind those that it reads.

    recorded: the types of the recorded fields.
    stream: the stream's name.
    zones_of: by the name of a computed field, what finds its time zones.

    Raises CircleError, and ComputedFieldError for an expression that does not fit.
    """
    nodes = {}
    for name, text in texts.items():
        try:
            nodes[name] = parse_expression(text)
        except QueryError as error:
            raise ComputedFieldError(name, str(error)) from error
    known: dict[str, Type | TypedExpression] = dict(recorded)
    made: list[ComputedField] = []
    for name in operands_first(nodes, "computed fields"):
        node, zones = nodes[name], zones_of(name)
        try:
            expression = Inference(known, stream, zones).infer(node)
            check_size(expression, node)
        except OffsetError as error:
            raise ComputedFieldError(name, str(error.in_text(texts[name]))) from error
        if expression.type.kind is Kind.NULL:
            raise ComputedFieldError(name, "it is nothing but NULL; give it a value with a type")
        known[name] = expression
        found = [zone for each in sorted(zone_names_in(node)) if (zone := zones(each)) is not None]
        made.append(ComputedField(name, print_expression(node), expression, names_in(node), tuple(found)))
    return made


class ComputedFieldError(ValueError):
    """The expression of a computed field does not fit its stream. name: the field's."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name
