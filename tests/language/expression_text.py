"""Random expressions as text, mostly well typed, and random rows full of edge cases."""

import math
from fractions import Fraction

from hypothesis import strategies as st

from railgun.language.types import Kind, Type, parse_type

FIELDS: dict[str, Type] = {
    name: parse_type(text)
    for name, text in {
        "n": "long",
        "m": "long",
        "x": "double",
        "y": "double",
        "d": "decimal(10,2)",
        "e": "decimal(18,4)",
        "w": "decimal(18,0)",
        "f": "decimal(18,18)",
        "s": "string",
        "r": "string",
        "t": "timestamp",
        "u": "timestamp",
        "p": "boolean",
        "q": "boolean",
    }.items()
}

LONG_EDGES = [0, 1, -1, 2, 7, -3, 10, 2**31, 2**53, 2**53 + 1, 10**17, 10**18 - 1, 10**18, -(10**18)]
LONG_EDGES += [4 * 10**18, 4 * 10**18 + 1, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1]
DOUBLE_EDGES = [0.0, 1.0, -1.0, 0.5, 0.1, -0.1, 2.5, 1e-18, 1e18, 2.0**53, 2.0**63, -(2.0**63), 1e19]
DOUBLE_EDGES += [5e-324, 2.0**-1022, 1.7976931348623157e308, -1e308, math.nextafter(2.0**63, 0), 12.5]
TEXTS = [
    "",
    "a",
    "A",
    "ab",
    "aB%",
    "_",
    "\\",
    "straße",
    "ΑΣ",
    "İ",
    "ŉ",
    "ﬃ",
    "é",
    "e\u0301",
    "日本",
    "😀",
    "a😀b",
]

longs = st.sampled_from(LONG_EDGES) | st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 20)
doubles = st.sampled_from(DOUBLE_EDGES) | st.floats(allow_nan=False, allow_infinity=False).map(
    lambda v: v + 0.0
)
texts = st.sampled_from(TEXTS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@st.composite
def _decimals(draw: st.DrawFn, type_: Type) -> Fraction:
    limit = 10**type_.precision - 1
    whole = st.integers(-limit, limit) | st.integers(-200, 200)
    edges = st.sampled_from([0, 1, -1, limit, -limit, 2**53, 2**53 + 1, limit // 3]).map(
        lambda v: max(-limit, min(limit, v))
    )
    return Fraction(draw(whole | edges), 10**type_.scale)


def values(type_: Type) -> st.SearchStrategy:
    match type_.kind:
        case Kind.LONG | Kind.TIMESTAMP:
            return longs
        case Kind.DOUBLE:
            return doubles
        case Kind.STRING:
            return texts
        case Kind.BOOLEAN:
            return st.booleans()
        case _:
            return _decimals(type_)


def rows(fields: dict[str, Type] = FIELDS) -> st.SearchStrategy:
    return st.fixed_dictionaries({name: st.none() | values(type_) for name, type_ in fields.items()})


# --- expressions

_LONG_LITERALS = ["0", "1", "-1", "2", "3", "10", "100", "9223372036854775807", "-9223372036854775808"]
_POINT_LITERALS = ["0.0", "0.5", "1.5", "-1.5", "0.10", "12.50", "0.0000000000000001", "123456789012345.6789"]
_DOUBLE_LITERALS = ["1e0", "-2.5e3", "1e308", "1e-320", "9.223372036854775807e18"]
_CALENDAR = ["HOUR", "MINUTE", "DAY_OF_WEEK", "DAY", "MONTH", "YEAR"]
_ZONES = ["Europe/Lisbon", "Asia/Tokyo", "UTC", "Europe/Nowhere"]
_WHOLE = ["ROUND", "FLOOR", "CEIL"]
_PATTERNS = ["%", "_", "a%", "%a", "%a%b", "_%", "a_", "\\%", "\\_%", "a\\\\", "%ß%", "__", "日%", "%😀_"]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _fields(kind: str) -> list[str]:
    return [name for name, type_ in FIELDS.items() if type_.kind == kind]


def _leaf(kind: str) -> st.SearchStrategy[str]:
    literals = {
        "long": st.sampled_from(_LONG_LITERALS),
        "double": st.sampled_from(_DOUBLE_LITERALS + _POINT_LITERALS),
        "decimal": st.sampled_from(_POINT_LITERALS),
        "string": texts.map(_quoted),
        "timestamp": st.nothing(),
        "boolean": st.sampled_from(["TRUE", "FALSE"]),
    }[kind]
    fields = st.sampled_from(_fields(kind))
    return fields | literals if kind == "timestamp" else fields | fields | literals


@st.composite
def expressions(draw: st.DrawFn, kind: str, depth: int = 3) -> str:
    """An expression of about this kind: nothing here checks scales, or what stands beside a literal."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return draw(_leaf(kind))

    def part(*kinds: str) -> str:
        return draw(expressions(draw(st.sampled_from(kinds)), depth - 1))

    shape = draw(st.integers(0, 9))
    if shape == 0:
        otherwise = draw(st.sampled_from(["", " ELSE NULL"])) or f" ELSE {part(kind)}"
        return f"CASE WHEN {part('boolean')} THEN {part(kind)}{otherwise} END"
    if shape == 1:
        return f"COALESCE({part(kind)}, {part(kind)})"
    if shape == 2 and draw(st.booleans()):
        return f"{draw(st.sampled_from(['GREATEST', 'LEAST', 'NULLIF']))}({part(kind)}, {part(kind)})"
    if shape == 2:
        of = draw(st.sampled_from(["long", "double", "decimal", "string"]))
        return f"CASE {part(of)} WHEN {part(of)} THEN {part(kind)} ELSE {part(kind)} END"
    match kind:
        case "long":
            return _long(draw, part)
        case "double":
            numbers = ("long", "double", "double", "decimal")
            operator = draw(st.sampled_from("+-*/%"))
            binary = f"({part(*numbers)} {operator} {part(*numbers)})"
            whole = f"{draw(st.sampled_from(_WHOLE))}({part('double', 'long')})"
            made = f"CAST({part('long', 'decimal')} AS double)"
            unary = [f"-({part(kind)})", f"ABS({part(kind)})", f"SQRT({part(*numbers)})", whole, made]
            return draw(st.sampled_from([binary, binary, *unary]))
        case "decimal":
            operator = draw(st.sampled_from("+-*%"))
            return draw(
                st.sampled_from(
                    [
                        f"({part(kind)} {operator} {part(kind, kind, 'long')})",
                        f"({part('long')} {operator} {part(kind)})",
                        f"-({part(kind)})",
                        f"ABS({part(kind)})",
                        f"{draw(st.sampled_from(_WHOLE))}({part(kind)})",
                        f"ROUND({part(kind)}, {draw(st.integers(0, 4))})",
                        f"CAST({part('long', 'decimal', 'double')} AS decimal(9,{draw(st.integers(0, 4))}))",
                    ]
                )
            )
        case "string":
            return _string(draw, part)
        case "timestamp" if draw(st.booleans()):
            return f"CAST({part('long')} AS timestamp)"
        case "timestamp":
            return f"({part(kind)} {draw(st.sampled_from('+-'))} {part('long')})"
        case _:
            return _boolean(draw, part)


def _long(draw: st.DrawFn, part) -> str:
    operator = draw(st.sampled_from("+-*%"))
    return draw(
        st.sampled_from(
            [
                f"({part('long')} {operator} {part('long')})",
                f"({part('timestamp')} - {part('timestamp')})",
                f"-({part('long')})",
                f"ABS({part('long')})",
                f"LENGTH({part('string')})",
                f"{draw(st.sampled_from(_CALENDAR))}({part('timestamp')})",
                f"{draw(st.sampled_from(_CALENDAR))}(({part('timestamp')}) IN '{draw(st.sampled_from(_ZONES))}')",
                f"{draw(st.sampled_from(_WHOLE))}({part('long')})",
                f"CAST({part('double', 'decimal', 'timestamp', 'string', 'long')} AS long)",
            ]
        )
    )


def _string(draw: st.DrawFn, part) -> str:
    return draw(
        st.sampled_from(
            [
                f"{draw(st.sampled_from(['LOWER', 'UPPER', 'TRIM']))}({part('string')})",
                f"({part('string')} || {part('string')})",
                f"SUBSTR({part('string')}, {part('long')})",
                f"SUBSTR({part('string')}, {draw(st.integers(-1, 4))}, {draw(st.integers(-1, 4))})",
                f"CAST({part('long')} AS string)",
            ]
        )
    )


def _boolean(draw: st.DrawFn, part) -> str:
    comparable = draw(
        st.sampled_from([("long", "double", "decimal"), ("string",), ("timestamp",), ("boolean",)])
    )
    negation = draw(st.sampled_from(["", "NOT "]))
    shape = draw(st.integers(0, 6))
    if shape <= 1:
        operator = draw(st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="]))
        return f"({part(*comparable)} {operator} {part(*comparable)})"
    if shape == 2:
        return f"({part('boolean')} {draw(st.sampled_from(['AND', 'OR']))} {negation}{part('boolean')})"
    if shape == 3:
        return f"({part(*comparable)} {negation}BETWEEN {part(*comparable)} AND {part(*comparable)})"
    if shape == 4:
        items = [part(*comparable) for _ in range(draw(st.integers(1, 4)))]
        items += draw(st.sampled_from([[], [], ["NULL"]]))
        return f"({part(*comparable)} {negation}IN ({', '.join(items)}))"
    if shape == 5:
        return f"({part('string')} {negation}LIKE {_quoted(draw(st.sampled_from(_PATTERNS)))})"
    return f"({part(*comparable)} IS {negation}NULL)"
