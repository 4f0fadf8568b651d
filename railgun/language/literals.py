"""Makes syntax nodes from the text of numbers, strings and LIKE patterns, and checks their limits."""

import math

from railgun.language.ast import DecimalLiteral, DoubleLiteral, Expression, LongLiteral
from railgun.language.errors import OffsetError
from railgun.language.limits import LIKE_PATTERN_LIMIT_BYTES, NUMBER_LIMIT_DIGITS

LONG_MAX = (1 << 63) - 1


def unquote(text: str) -> str:
    """The content of quoted text. A doubled quote stands for one."""
    quote = text[0]
    return text[1:-1].replace(quote + quote, quote)


def long_literal(text: str, offset: int) -> LongLiteral:
    """A whole number. 2**63 passes here, because a minus may stand before it."""
    digits = text.lstrip("0") or "0"
    if len(digits) > 19 or int(digits) > LONG_MAX + 1:
        raise too_big(offset)
    return LongLiteral(int(digits), position=offset)


def too_big(offset: int) -> OffsetError:
    """The error for a whole number beyond 64 bits."""
    return OffsetError(
        "this whole number is beyond 64 bits", offset, "with an exponent (1e19) it would be a double"
    )


def _too_long(offset: int) -> OffsetError:
    hint = "write fewer: a double has 17, a decimal 18"
    return OffsetError(f"a number of more than {NUMBER_LIMIT_DIGITS} digits", offset, hint)


def _beyond_double(offset: int) -> OffsetError:
    return OffsetError(
        "this number is beyond the range of a double", offset, "the greatest is 1.7976931348623157e308"
    )


def decimal_literal(text: str, offset: int) -> DecimalLiteral:
    """A number with a point and no exponent. Raises OffsetError."""
    whole, _, fraction = text.partition(".")
    if len(whole) + len(fraction) > NUMBER_LIMIT_DIGITS:
        raise _too_long(offset)
    if not math.isfinite(float(text)):
        raise _beyond_double(offset)
    return DecimalLiteral(int(whole + fraction), len(fraction), position=offset)


def double_literal(text: str, offset: int) -> DoubleLiteral:
    """A number with an exponent. Raises OffsetError."""
    if len(text) > NUMBER_LIMIT_DIGITS:
        raise _too_long(offset)
    value = float(text)
    if not math.isfinite(value):
        raise _beyond_double(offset)
    return DoubleLiteral(value, position=offset)


def negative(number: Expression, offset: int) -> Expression:
    """The number with its sign changed, as a literal that begins at the minus."""
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
    """Return the pattern. Raises OffsetError if it is too long or ends in a lone backslash."""
    if len(pattern.encode()) > LIKE_PATTERN_LIMIT_BYTES:
        hint = "test its parts with several LIKE, joined by AND"
        raise OffsetError(f"a LIKE pattern of more than {LIKE_PATTERN_LIMIT_BYTES} bytes", offset, hint)
    trailing = len(pattern) - len(pattern.rstrip("\\"))
    if trailing % 2:
        raise OffsetError(
            "the LIKE pattern ends in a lone backslash", offset, "write two to match a backslash itself"
        )
    return pattern
