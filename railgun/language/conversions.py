"""Literals as typed constants, and what may be converted without being asked."""

from railgun.language import ast
from railgun.language.literals import Misfit
from railgun.language.typed import Apply, Constant, Operation, TypedExpression
from railgun.language.types import BOOLEAN, DECIMAL_DIGITS, DOUBLE, LONG, NULL, STRING, Type, decimal


def literal(node: ast.Expression) -> Constant:
    """A literal by itself: a number with a point is a double."""
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
    """The double nearest to a decimal, ties to even: what Python's reader of numbers gives."""
    return float(f"{unscaled}e-{scale}") + 0.0


def decimal_constant(node: ast.DecimalLiteral) -> Constant:
    digits = len(str(abs(node.unscaled)))
    if digits > DECIMAL_DIGITS or node.scale > DECIMAL_DIGITS:
        raise Misfit(f"a decimal has at most {DECIMAL_DIGITS} digits", node.position)
    return Constant(decimal(max(digits, node.scale), node.scale), node.unscaled)


def at_scale(node: ast.DecimalLiteral, scale: int) -> Constant:
    unscaled, rest = divmod(node.unscaled * 10**scale, 10**node.scale)
    if rest or len(str(abs(unscaled))) > DECIMAL_DIGITS:
        raise Misfit(
            f"this number does not fit the other branches: decimals with {scale} digits after the point",
            node.position,
        )
    return Constant(decimal(max(len(str(abs(unscaled))), scale), scale), unscaled)


def to_double(typed: TypedExpression) -> TypedExpression:
    if typed.type == DOUBLE:
        return typed
    if isinstance(typed, Constant) and isinstance(typed.value, int):
        return Constant(DOUBLE, _rounded(typed.value, typed.type.scale))
    return Apply(DOUBLE, Operation.TO_DOUBLE, (typed,))


def typed_as(typed: TypedExpression, common: Type) -> TypedExpression:
    """A branch under the common type: NULL gets one; decimals of one scale differ in name alone."""
    return Constant(common, typed.value) if isinstance(typed, Constant) else typed
