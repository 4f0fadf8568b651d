"""Types expressions over a stream's fields: makes typed trees from syntax trees, or an error with the place.

Literals become typed constants. The implicit conversions of the language are added here.
"""

from collections.abc import Container, Sequence

from railgun.language import ast, remedies
from railgun.language.errors import OffsetError, nearest
from railgun.language.typed import Apply, Constant, Field, Fields, InZone, Operation, TypedExpression
from railgun.language.types import (
    BOOLEAN,
    DECIMAL_DIGITS,
    DOUBLE,
    LONG,
    NULL,
    STRING,
    TIMESTAMP,
    Kind,
    Type,
    decimal,
)
from railgun.language.zones import Zones, pinned_zone, zone_names


def literal(node: ast.Expression) -> Constant:
    """The constant of a literal that stands alone: a number with a point is a double."""
    match node:
        case ast.NullLiteral():
            return Constant(NULL, None)
        case ast.BooleanLiteral(value):
            return Constant(BOOLEAN, value)
        case ast.StringLiteral(text):
            return Constant(STRING, text)
        case ast.LongLiteral(number):
            return Constant(LONG, number)
        case ast.DecimalLiteral(unscaled, scale):
            return Constant(DOUBLE, _rounded(unscaled, scale))
        case ast.DoubleLiteral(double):
            return Constant(DOUBLE, double)
        case _:
            raise TypeError(f"no expression: {node!r}")


def _rounded(unscaled: int, scale: int) -> float:
    """The double nearest to a decimal, ties to even, which is what `float` of a text gives."""
    return float(f"{unscaled}e-{scale}") + 0.0


def decimal_constant(node: ast.DecimalLiteral) -> Constant:
    digits = len(str(abs(node.unscaled)))
    if digits > DECIMAL_DIGITS or node.scale > DECIMAL_DIGITS:
        hint = "with an exponent (0.5e0) it is a double"
        raise OffsetError(f"a decimal has at most {DECIMAL_DIGITS} digits", node.position, hint)
    return Constant(decimal(max(digits, node.scale), node.scale), node.unscaled)


def at_scale(node: ast.DecimalLiteral, scale: int) -> Constant:
    unscaled, rest = divmod(node.unscaled * 10**scale, 10**node.scale)
    if rest or len(str(abs(unscaled))) > DECIMAL_DIGITS:
        raise OffsetError(
            f"this number does not fit the other branches: decimals with {scale} digits after the point",
            node.position,
            f"at most {DECIMAL_DIGITS - scale} digits may stand before the point and {scale} behind it",
        )
    return Constant(decimal(max(len(str(abs(unscaled))), scale), scale), unscaled)


def to_double(typed: TypedExpression) -> TypedExpression:
    if typed.type == DOUBLE:
        return typed
    if isinstance(typed, Constant) and isinstance(typed.value, int):
        return Constant(DOUBLE, _rounded(typed.value, typed.type.scale))
    return Apply(DOUBLE, Operation.TO_DOUBLE, (typed,))


def typed_as(typed: TypedExpression, common: Type) -> TypedExpression:
    """A branch with the common type. Only constants change: decimals of one scale have the same values."""
    return Constant(common, typed.value) if isinstance(typed, Constant) else typed


_NEGATABLE = (Kind.LONG, Kind.DOUBLE, Kind.DECIMAL)
_LISTED_FIELDS = 12


class Inference:
    """Types expressions over the fields of one stream. Raises no other error than OffsetError.

    metrics: the names of the stream's metrics, which these expressions cannot read.
    """

    def __init__(
        self,
        fields: Fields,
        stream: str,
        zones: Zones = pinned_zone,
        metrics: Container[str] = (),
    ) -> None:
        self.fields = fields
        self.stream = stream
        self.zones = zones
        self.metrics = metrics

    def infer(self, node: ast.Expression) -> TypedExpression:
        match node:
            case ast.FieldReference():
                return self.field(node)
            case ast.Arithmetic(operator, left, right):
                return self._arithmetic(node, Operation(operator), *self._pair(left, right))
            case ast.Comparison(operator, left, right):
                return _comparison(node, Operation(operator), *self._pair(left, right))
            case ast.And(operands) | ast.Or(operands):
                operation = Operation.AND if isinstance(node, ast.And) else Operation.OR
                parts = tuple(self._of_kind(part, operation.upper(), Kind.BOOLEAN) for part in operands)
                return Apply(BOOLEAN, operation, parts)
            case ast.Not(operand):
                return Apply(BOOLEAN, Operation.NOT, (self._of_kind(operand, "NOT", Kind.BOOLEAN),))
            case ast.Negation(operand):
                typed = self._of_kind(operand, "a minus", *_NEGATABLE)
                return Apply(typed.type, Operation.NEGATE, (typed,))
            case ast.IsNull(operand):
                return Apply(BOOLEAN, Operation.IS_NULL, (self.infer(operand),))
            case ast.Between(operand, low, high):
                return self._between(node, operand, low, high)
            case ast.InList():
                return self._in_list(node)
            case ast.Like(operand, pattern):
                typed = self._of_kind(operand, "LIKE", Kind.STRING)
                return Apply(BOOLEAN, Operation.LIKE, (typed, Constant(STRING, pattern)))
            case ast.Case():
                return self._case(node)
            case ast.Call():
                return self._call(node)
            case ast.Cast(operand, type_):
                return _cast(node, self.infer(operand), type_)
            case _:
                return literal(node)

    def predicate(self, node: ast.Expression) -> TypedExpression:
        """The typed tree of a WHERE."""
        return self._of_kind(node, "WHERE", Kind.BOOLEAN)

    def field(self, node: ast.FieldReference) -> TypedExpression:
        """A field of the stream by its exact name; a computed one as its expression."""
        if node.name not in self.fields:
            raise self.unknown(node)
        found = self.fields[node.name]
        return Field(found, node.name) if isinstance(found, Type) else found

    def unknown(self, node: ast.FieldReference) -> OffsetError:
        """The error for a name that is not a field."""
        if node.name in self.metrics:
            message = f"{node.name} is a metric of stream {self.stream}, not a field"
            hint = "WHERE, FILTER, GROUP BY and arguments cannot read metrics; a DERIVE can"
            return OffsetError(message, node.position, hint)
        near = nearest(node.name, self.fields)
        if near is not None:
            hint = f"did you mean {near}?"
        elif node.quoted:
            hint = "text goes in single quotes"
        else:
            names = list(self.fields)[:_LISTED_FIELDS]
            hint = f"its fields are {', '.join(names)}{' ...' if len(self.fields) > len(names) else ''}"
        return OffsetError(f"stream {self.stream} has no field {node.name[:80]!r}", node.position, hint)

    def _of_kind(self, node: ast.Expression, where: str, *kinds: Kind) -> TypedExpression:
        typed = self.infer(node)
        if typed.type.kind not in kinds:
            message = f"{where} takes {' or '.join(kinds)}, not {typed.type}"
            raise OffsetError(message, node.position, remedies.of_conversion(typed.type, kinds[0]))
        return typed

    def _pair(
        self, left: ast.Expression, right: ast.Expression, known: TypedExpression | None = None
    ) -> tuple[TypedExpression, TypedExpression]:
        """Both operands, typed. A literal with a point is a decimal where the other operand is one.

        known: the typed left operand, if it was inferred already.
        """
        a, b = known or self.infer(left), self.infer(right)
        if isinstance(left, ast.DecimalLiteral) and b.type.kind is Kind.DECIMAL:
            a = decimal_constant(left)
        elif isinstance(right, ast.DecimalLiteral) and a.type.kind is Kind.DECIMAL:
            b = decimal_constant(right)
        return a, b

    # --- operators

    def _arithmetic(
        self, node: ast.Arithmetic, operation: Operation, a: TypedExpression, b: TypedExpression
    ) -> TypedExpression:
        if operation is Operation.CONCATENATE:
            return _concatenation(node, a, b)
        if a.type == TIMESTAMP and operation in (Operation.ADD, Operation.SUBTRACT):
            if b.type == LONG:
                return Apply(TIMESTAMP, operation, (a, b))
            if b.type == TIMESTAMP and operation is Operation.SUBTRACT:
                return Apply(LONG, operation, (a, b))
        if not (a.type.is_numeric and b.type.is_numeric):
            message = f"{a.type} {operation} {b.type} is not defined"
            raise OffsetError(message, node.position, remedies.of_arithmetic(a.type, b.type))
        if operation is Operation.DIVIDE or DOUBLE in (a.type, b.type):
            return Apply(DOUBLE, operation, (to_double(a), to_double(b)))
        if a.type == LONG and b.type == LONG:
            return Apply(LONG, operation, (a, b))
        multiplies = operation is Operation.MULTIPLY
        scale = a.type.scale + b.type.scale if multiplies else max(a.type.scale, b.type.scale)
        if scale > DECIMAL_DIGITS:
            raise OffsetError(
                f"{a.type} {operation} {b.type} would have {scale} digits after the point; "
                f"a decimal has at most {DECIMAL_DIGITS}",
                node.position,
                "beside a double (1e0) it is computed in doubles",
            )
        return Apply(decimal(DECIMAL_DIGITS, scale), operation, (a, b))

    def _between(
        self, node: ast.Between, operand: ast.Expression, low: ast.Expression, high: ast.Expression
    ) -> TypedExpression:
        known = self.infer(operand)
        above = _comparison(node, Operation.GREATER_EQUAL, *self._pair(operand, low, known))
        below = _comparison(node, Operation.LESS_EQUAL, *self._pair(operand, high, known))
        return Apply(BOOLEAN, Operation.AND, (above, below))

    def _in_list(self, node: ast.InList) -> TypedExpression:
        known = self.infer(node.operand)
        pairs = [(item, *self._pair(node.operand, item, known)) for item in node.items]
        equal = [_comparison(item, Operation.EQUAL, a, b) for item, a, b in pairs]
        if known.type == NULL:
            return Constant(BOOLEAN, None)
        if isinstance(node.operand, ast.DecimalLiteral):
            # The literal may be a decimal beside some items and a double beside others, so each item has its own test.
            return equal[0] if len(equal) == 1 else Apply(BOOLEAN, Operation.OR, tuple(equal))
        return Apply(BOOLEAN, Operation.IN, (known, *(b for _, _, b in pairs)))

    # --- branches and functions

    def _case(self, node: ast.Case) -> TypedExpression:
        operand = node.operand
        if operand is None:
            conditions = [self._of_kind(when, "WHEN", Kind.BOOLEAN) for when, _ in node.branches]
        else:
            known = self.infer(operand)
            conditions = [
                _comparison(when, Operation.EQUAL, *self._pair(operand, when, known))
                for when, _ in node.branches
            ]
        default = node.default or ast.NullLiteral(position=node.position)
        common, values = self._of_one_type(node, "CASE", [*(then for _, then in node.branches), default])
        parts = [part for pair in zip(conditions, values[:-1]) for part in pair]
        return Apply(common, Operation.CASE, (*parts, values[-1]))

    def _call(self, node: ast.Call) -> TypedExpression:
        function, operation, name = node.function, Operation(node.function), node.function.upper()
        match function:
            case ast.Function.COALESCE | ast.Function.GREATEST | ast.Function.LEAST:
                common, values = self._of_one_type(node, name, node.arguments)
                return Apply(common, operation, tuple(values))
            case ast.Function.NULLIF:
                return self._nullif(node)
            case ast.Function.ROUND | ast.Function.FLOOR | ast.Function.CEIL:
                return self._whole(node, operation)
            case ast.Function.SQRT:
                number = self._of_kind(node.arguments[0], name, *_NEGATABLE)
                return Apply(DOUBLE, operation, (to_double(number),))
            case _ if function in ast.CALENDAR:
                return Apply(LONG, operation, (self._local_time(node),))
            case ast.Function.SUBSTR:
                text, *places = node.arguments
                numbers = [self._of_kind(place, f"{name}'s place", Kind.LONG) for place in places]
                return Apply(STRING, operation, (self._of_kind(text, name, Kind.STRING), *numbers))
        kinds = _NEGATABLE if function is ast.Function.ABS else (Kind.STRING,)
        typed = self._of_kind(node.arguments[0], name, *kinds)
        return Apply(LONG if function is ast.Function.LENGTH else typed.type, operation, (typed,))

    def _local_time(self, node: ast.Call) -> TypedExpression:
        (operand,) = node.arguments
        typed = self.infer(operand)
        if typed.type != TIMESTAMP:
            message = f"{node.function.upper()} takes timestamp, not {typed.type}"
            raise OffsetError(message, operand.position, remedies.of_conversion(typed.type, Kind.TIMESTAMP))
        if node.zone is None:
            return typed
        zone = self.zones(node.zone)
        if zone is None:
            near = nearest(node.zone, zone_names())
            hint = f"did you mean {near}?" if near else "names are such as 'Europe/Lisbon'"
            raise OffsetError(f"unknown time zone {node.zone[:80]!r}", node.zone_position, hint)
        return Apply(TIMESTAMP, Operation.IN_ZONE, (typed, InZone(STRING, zone)))

    def _nullif(self, node: ast.Call) -> TypedExpression:
        left, right = node.arguments
        a, b = self._pair(left, right)
        if a.type == NULL:
            raise OffsetError("NULLIF of NULL has no type", left.position, "put a value that has one first")
        equal = _comparison(node, Operation.EQUAL, a, b)
        return a if isinstance(equal, Constant) else Apply(a.type, Operation.NULLIF, (a, b))

    def _whole(self, node: ast.Call, operation: Operation) -> TypedExpression:
        """ROUND, FLOOR and CEIL. A value that already has the result's scale stays as it is."""
        typed = self._of_kind(node.arguments[0], operation.upper(), *_NEGATABLE)
        scale = _digits(node.arguments[1], typed.type) if len(node.arguments) > 1 else 0
        if typed.type == DOUBLE:
            return Apply(DOUBLE, operation, (typed,))
        if typed.type.scale == scale:
            return typed
        return Apply(decimal(DECIMAL_DIGITS, scale), operation, (typed,))

    def _of_one_type(
        self, node: ast.Expression, where: str, branches: Sequence[ast.Expression]
    ) -> tuple[Type, list[TypedExpression]]:
        """The common type of branches, and the branches converted to it.

        Long widens to double; a literal with a point takes the scale of the decimals beside it.
        """
        values = [self.infer(branch) for branch in branches]
        scales = {value.type.scale for value in values if value.type.kind is Kind.DECIMAL}
        if len(scales) == 1:
            scale = scales.pop()
            for index, branch in enumerate(branches):
                if isinstance(branch, ast.DecimalLiteral):
                    values[index] = at_scale(branch, scale)
        kinds = {value.type.kind for value in values} - {Kind.NULL}
        if kinds == {Kind.LONG, Kind.DOUBLE}:
            values = [value if value.type == NULL else to_double(value) for value in values]
        types = dict.fromkeys(value.type for value in values if value.type != NULL)
        if not types:
            hint = "give it a value that has one"
            raise OffsetError(f"{where} with nothing but NULL has no type", node.position, hint)
        first = next(iter(types))
        if len({(type_.kind, type_.scale) for type_ in types}) > 1:
            odd = next(i for i, value in enumerate(values) if value.type not in (NULL, first))
            raise OffsetError(
                f"the branches of {where} have the types {' and '.join(map(str, types))}",
                branches[odd].position,
                remedies.of_branches(types),
            )
        common = max(types, key=lambda type_: type_.precision)
        return common, [typed_as(value, common) for value in values]


# --- functions

# By target, the types that can be cast to it. Other casts differ between languages or lose information.
_CASTS = {
    Kind.DOUBLE: (Kind.LONG, Kind.DECIMAL),
    Kind.LONG: (Kind.DOUBLE, Kind.DECIMAL, Kind.TIMESTAMP, Kind.STRING),
    Kind.DECIMAL: (Kind.LONG, Kind.DECIMAL),
    Kind.TIMESTAMP: (Kind.LONG,),
    Kind.STRING: (Kind.LONG,),
}


def _cast(node: ast.Expression, typed: TypedExpression, type_: Type) -> TypedExpression:
    takes = _CASTS.get(type_.kind, ())
    if typed.type.kind not in takes:
        hint = remedies.of_cast(typed.type, type_, takes, _CASTS[Kind.LONG])
        raise OffsetError(f"{typed.type} cannot be cast to {type_}", node.position, hint)
    if type_ == DOUBLE:
        return to_double(typed)
    return Apply(type_, Operation.CAST, (typed,))


def _concatenation(node: ast.Expression, a: TypedExpression, b: TypedExpression) -> TypedExpression:
    if not a.type == b.type == STRING:
        other = b.type if a.type == STRING else a.type
        hint = remedies.of_conversion(other, Kind.STRING)
        raise OffsetError(f"{a.type} || {b.type} is not defined", node.position, hint)
    return Apply(STRING, Operation.CONCATENATE, (a, b))


def _digits(node: ast.Expression, type_: Type) -> int:
    """The number of digits that ROUND leaves behind the point of a decimal."""
    if type_.kind is not Kind.DECIMAL:
        message = f"ROUND takes digits beside a decimal, not beside a {type_}"
        raise OffsetError(message, node.position, "ROUND(x) gives a whole number")
    if not (isinstance(node, ast.LongLiteral) and 0 <= node.value <= type_.scale):
        message = f"the digits that ROUND leaves of a {type_} are a number from 0 to {type_.scale}"
        raise OffsetError(message, node.position, f"as in ROUND(x, {type_.scale})")
    return node.value


# --- comparisons


def _comparison(
    node: ast.Expression, operation: Operation, a: TypedExpression, b: TypedExpression
) -> TypedExpression:
    if NULL in (a.type, b.type):
        return Constant(BOOLEAN, None)
    if a.type.kind != b.type.kind and not (a.type.is_numeric and b.type.is_numeric):
        hint = remedies.of_comparison(a.type, b.type)
        raise OffsetError(f"{a.type} cannot be compared with {b.type}", node.position, hint)
    return Apply(BOOLEAN, operation, (a, b))
