"""Literals: the text of numbers, strings and LIKE patterns to syntax nodes, each within its limits."""

import math

from railgun.language.ast import DecimalLiteral, DoubleLiteral, Expression, LongLiteral
from railgun.language.limits import LIKE_PATTERN_LIMIT_BYTES, NUMBER_LIMIT_DIGITS

LONG_MAX = (1 << 63) - 1


class Misfit(Exception):
    """What the text says at `offset` cannot be; becomes a QueryError where the text is at hand."""

    def __init__(self, message: str, offset: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.hint = hint


def unquote(text: str) -> str:
    """The content of quoted text, a doubled quote standing for one."""
    quote = text[0]
    return text[1:-1].replace(quote + quote, quote)


def long_literal(text: str, offset: int) -> LongLiteral:
    """A whole number. 2**63 passes here, for the minus that may stand before it."""
    digits = text.lstrip("0") or "0"
    if len(digits) > 19 or int(digits) > LONG_MAX + 1:
        raise too_big(offset)
    return LongLiteral(int(digits), position=offset)


def too_big(offset: int) -> Misfit:
    return Misfit(
        "this whole number is beyond 64 bits", offset, "with an exponent (1e19) it would be a double"
    )


def decimal_literal(text: str, offset: int) -> DecimalLiteral:
    whole, _, fraction = text.partition(".")
    if len(whole) + len(fraction) > NUMBER_LIMIT_DIGITS:
        raise Misfit(f"a number of more than {NUMBER_LIMIT_DIGITS} digits", offset)
    if not math.isfinite(float(text)):
        raise Misfit("this number is beyond the range of a double", offset)
    return DecimalLiteral(int(whole + fraction), len(fraction), position=offset)


def double_literal(text: str, offset: int) -> DoubleLiteral:
    if len(text) > NUMBER_LIMIT_DIGITS:
        raise Misfit(f"a number of more than {NUMBER_LIMIT_DIGITS} digits", offset)
    value = float(text)
    if not math.isfinite(value):
        raise Misfit("this number is beyond the range of a double", offset)
    return DoubleLiteral(value, position=offset)


def negative(number: Expression, offset: int) -> Expression:
    """The number with the sign before it."""
    match number:
        case LongLiteral(value):
            return LongLiteral(-value, position=offset)
        case DecimalLiteral(unscaled, scale):
            return DecimalLiteral(-unscaled, scale, position=offset)
        case DoubleLiteral(value):
            return DoubleLiteral(-value + 0.0, position=offset)
        case _:
            raise TypeError(f"no number: {number!r}")


def like_pattern(pattern: str, offset: int) -> str:
    """The pattern, once its length and its escapes are found right."""
    if len(pattern.encode()) > LIKE_PATTERN_LIMIT_BYTES:
        raise Misfit(f"a LIKE pattern of more than {LIKE_PATTERN_LIMIT_BYTES} bytes", offset)
    trailing = len(pattern) - len(pattern.rstrip("\\"))
    if trailing % 2:
        raise Misfit(
            "the LIKE pattern ends in a lone backslash", offset, "write two to match a backslash itself"
        )
    return pattern
