"""The remedies in errors about types. They say how to convert a value `x` to the type that is needed."""

from collections.abc import Collection

from railgun.language.types import BOOLEAN, DECIMAL_DIGITS, NULL, STRING, TIMESTAMP, Kind, Type

_OF_NULL = "NULL has no type: write a value that has one"
_LONGS = {
    Kind.STRING: "a string is no number: CAST(x AS long) makes a long of its digits",
    Kind.BOOLEAN: "CASE WHEN x THEN 1 ELSE 0 END makes a number of a boolean",
    Kind.TIMESTAMP: "CAST(x AS long) makes a long of a timestamp, in ms",
    Kind.DOUBLE: "CAST(x AS long) leaves out what is behind the point",
    Kind.DECIMAL: "CAST(x AS long) leaves out what is behind the point",
}
_BOOLEANS = {
    Kind.LONG: "compare it, as in x <> 0",
    Kind.DOUBLE: "compare it, as in x <> 0.0",
    Kind.DECIMAL: "compare it, as in x <> 0.0",
    Kind.STRING: "compare it, as in x = 'yes'",
    Kind.TIMESTAMP: "compare it, as in x IS NOT NULL",
}
_STRINGS = {
    Kind.LONG: "CAST(x AS string) makes a string of a long",
    Kind.DOUBLE: "CAST(CAST(x AS long) AS string) makes a string of what is before the point",
    Kind.DECIMAL: "CAST(CAST(x AS long) AS string) makes a string of what is before the point",
    Kind.BOOLEAN: "CASE WHEN x THEN 'yes' ELSE 'no' END makes a string of a boolean",
    Kind.TIMESTAMP: "CAST(CAST(x AS long) AS string) makes a string of a timestamp, in ms",
}
_TIMESTAMPS = {
    Kind.LONG: "CAST(x AS timestamp) makes one of a long, in ms",
    Kind.DOUBLE: "CAST(CAST(x AS long) AS timestamp) makes one of a number, in ms",
    Kind.DECIMAL: "CAST(CAST(x AS long) AS timestamp) makes one of a number, in ms",
    Kind.STRING: "CAST(CAST(x AS long) AS timestamp) makes one of digits, in ms",
    Kind.BOOLEAN: "a boolean tells no time: name a field that is a timestamp",
}
_REMEDIES = {
    Kind.BOOLEAN: _BOOLEANS,
    Kind.STRING: _STRINGS,
    Kind.TIMESTAMP: _TIMESTAMPS,
    Kind.LONG: _LONGS,
    Kind.DOUBLE: _LONGS,
    Kind.DECIMAL: _LONGS,
}


def of_conversion(found: Type, wanted: Kind) -> str:
    """Return how to convert a value `x` of one type to another kind."""
    return _OF_NULL if found == NULL else _REMEDIES[wanted][found.kind]


def of_cast(found: Type, wanted: Type, takes: Collection[Kind], to_long: Collection[Kind]) -> str:
    """Return what to write in place of a cast that does not exist.

    takes: the kinds that can be cast to the wanted type. to_long: the kinds that can be cast to a long.
    """
    if found == wanted:
        return "it is one already"
    if not takes or found.kind not in to_long:
        return of_conversion(found, wanted.kind)
    return f"only {' or '.join(takes)} can; CAST(CAST(x AS long) AS {wanted}) goes by way of a long"


def of_comparison(a: Type, b: Type) -> str:
    """Return how to make values of two types comparable."""
    if BOOLEAN in (a, b):
        return "a boolean stands by itself, or is compared with TRUE or FALSE"
    if TIMESTAMP in (a, b):
        other = b if a == TIMESTAMP else a
        return of_conversion(other, Kind.TIMESTAMP)
    return "a string is no number: compare it with text, as in '5', or CAST(x AS long)"


def of_arithmetic(a: Type, b: Type) -> str:
    """Return how to convert values of two types that arithmetic does not accept together."""
    if NULL in (a, b):
        return _OF_NULL
    if BOOLEAN in (a, b):
        return of_conversion(BOOLEAN, Kind.LONG)
    if TIMESTAMP in (a, b):
        return "timestamp - timestamp is a long, in ms; timestamp ± long a timestamp"
    return "|| joins two strings" if a == b == STRING else of_conversion(STRING, Kind.LONG)


def of_branches(types: Collection[Type]) -> str:
    """Return how to give branches of different types one type."""
    kinds = {type_.kind for type_ in types}
    if kinds == {Kind.DECIMAL}:
        scale = max(type_.scale for type_ in types)
        return f"CAST(x AS decimal({DECIMAL_DIGITS},{scale})) gives them one scale"
    if kinds == {Kind.DECIMAL, Kind.LONG}:
        return "beside decimals write a number with a point, such as 0.0"
    if kinds == {Kind.DECIMAL, Kind.DOUBLE}:
        return "CAST(x AS double) makes a double of a decimal"
    return "write branches of one type; only long widens, to double"
