"""LOWER and UPPER in Spark SQL by the language's own tables: each code point by itself, Unicode 14.0."""

from functools import cache
from importlib import resources

from railgun.wire.schema import STRING_LIMIT_BYTES

_SEPARATOR = "\x01"


def mapped_case(operand: str, *, upper: bool) -> str:
    """SQL text. Spark's own functions follow another Unicode version, and rules of context: they do for ASCII alone."""
    function = "upper" if upper else "lower"
    looked_up = f"transform(split(s, ''), c -> coalesce(element_at({_table(function)}, c), c))"
    mapped = f"IF(octet_length(s) = char_length(s), {function}(s), array_join({looked_up}, ''))"
    fitting = f"IF(octet_length(s) <= {STRING_LIMIT_BYTES}, s, CAST(NULL AS STRING))"
    return f"transform(transform(array({operand}), s -> {mapped}), s -> {fitting})[0]"


@cache
def _table(direction: str) -> str:
    """A map of Spark's from characters to what they become, as SQL text."""
    keys: list[str] = []
    values: list[str] = []
    text = resources.files("railgun.language").joinpath("casemap.txt").read_text("utf-8")
    for line in text.splitlines():
        if line.startswith(direction):
            _, code_point, *mapped = line.split()
            keys.append(chr(int(code_point, 16)))
            values.append("".join(chr(int(point, 16)) for point in mapped))
    return f"map_from_arrays({_listed(keys)}, {_listed(values)})"


def _listed(texts: list[str]) -> str:
    joined = _SEPARATOR.join(texts).encode().hex()
    return f"split(CAST(X'{joined}' AS STRING), '{_SEPARATOR}')"
