"""A readable name for a metric that was given none."""

import hashlib
import re

from railgun.language import ast
from railgun.language.duration import format_duration
from railgun.language.limits import NAME_LIMIT

_DIGEST_LENGTH = 8
# What would otherwise vanish, so that `amount > 0` and `amount < 0` have names of their own.
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
}
_OPERATOR = re.compile("|".join(map(re.escape, _SPOKEN)))
_NO_WORD = re.compile(r"[^a-z0-9]+")


def metric_name(
    aggregator: ast.Aggregator,
    argument: str | None,
    where: str | None,
    group_by: tuple[str, ...],
    window: ast.Window,
    canonical: str,
) -> str:
    """`sum_amount_where_amount_gt_0_by_card_sliding_7d`: at most 63 characters.

    argument, where: their canonical text. A longer name is cut and ends in eight hexadecimal digits of the
    SHA-256 of `canonical`, the metric's text.
    """
    parts = [str(aggregator)]
    if argument is not None:
        parts.append(argument)
    if where is not None:
        parts += ["where", where]
    if group_by:
        parts += ["by", *group_by]
    parts.append(window_name(window))
    name = "_".join(word for part in parts if (word := _words(part)))
    if len(name) <= NAME_LIMIT:
        return name
    digest = hashlib.sha256(canonical.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{name[: NAME_LIMIT - _DIGEST_LENGTH - 1].rstrip('_')}_{digest}"


def window_name(window: ast.Window) -> str:
    """`sliding_5m_delayed_1h`"""
    size = "" if window.size_ms is None else f"_{format_duration(window.size_ms)}"
    delay = f"_delayed_{format_duration(window.delay_ms)}" if window.delay_ms else ""
    return f"{window.kind}{size}{delay}"


def _words(text: str) -> str:
    spoken = _OPERATOR.sub(lambda match: f" {_SPOKEN[match[0]]} ", text)
    return _NO_WORD.sub("_", spoken.lower()).strip("_")
