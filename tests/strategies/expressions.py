"""Type-correct expressions as query text, of every operator and function."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tests.oracle.types import BOOLEAN, DECIMAL_DIGITS, DOUBLE, LONG, STRING, TIMESTAMP, Type, decimal
from tests.strategies.source import Source

# How tightly a piece of text holds together; an operator asks for at least so much of its operands.
OR, AND, NOT, PREDICATE, SUM, PRODUCT, UNARY, PRIMARY = range(8)

_STRINGS = ("'a'", "'b'", "'ab'", "''", "'it''s'", "'ß'", "'😀'", "'A'", "'x_y'")
_PATTERNS = ("'a%'", "'%b'", "'_'", "'%'", "''", "'a_%'", "'%\\%%'", "'x\\_y'", "'%''%'", "'_b%'", "'\\a\\b'")
_LONGS = (
    "0",
    "1",
    "2",
    "-1",
    "3",
    "7",
    "-5",
    "100",
    "9223372036854775807",
    "-9223372036854775808",
    "3037000500",
)
_POINTS = ("0.5", "0.1", "1.0", "-0.25", "2.50", "0.0", "100.001", "-0.0", "0.30")
_EXPONENTS = ("1e0", "1e-1", "25e-2", "1.5E1", "-1e16", "1e308", "5e-324", "0e0", "9007199254740993e0")
_PLACES = ("1", "2", "3", "0", "-1")
_CALENDAR = ("HOUR", "MINUTE", "DAY_OF_WEEK", "DAY", "MONTH", "YEAR")
_ZONES = ("Europe/Lisbon", "America/New_York", "Asia/Tokyo", "UTC")
_WHOLE = ("ROUND", "FLOOR", "CEIL")
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "!=")


@dataclass(frozen=True)
class Drawn:
    """An expression's text, type and how tightly it holds; `point`: it is a literal with a point."""

    text: str
    type: Type
    level: int = PRIMARY
    point: bool = False


class ExpressionSource:
    """Draws expressions over the fields of a stream."""

    def __init__(self, source: Source, fields: Mapping[str, Type]) -> None:
        self.source = source
        self.by_kind: dict[str, list[Drawn]] = {}
        for name, declared in fields.items():
            inner = decimal(declared.scale) if declared.kind == "decimal" else declared
            self.by_kind.setdefault(declared.kind, []).append(Drawn(name, inner))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of expressions that can be drawn here: decimals and timestamps want a field of theirs."""
        wanting = tuple(kind for kind in ("decimal", "timestamp") if kind in self.by_kind)
        return ("long", "double", "boolean", "string", *wanting)

    def draw(self, kind: str, depth: int) -> Drawn:
        """An expression of a kind, at most `depth` operators deep (a few more where one brings its own)."""
        if depth <= 0 or self.source.chance(25):
            return self.leaf(kind)
        if kind != "decimal" and self.source.chance(12):
            return self.branches(kind, depth)
        return {
            "long": self.long,
            "double": self.double,
            "decimal": self.decimal,
            "boolean": self.boolean,
            "string": self.string,
            "timestamp": self.timestamp,
        }[kind](depth - 1)

    # --- putting text together

    def wrapped(self, operand: Drawn, level: int) -> str:
        """An operand's text, in parentheses where it must be, and sometimes where it need not."""
        if operand.level < level or self.source.chance(8):
            return f"({operand.text})"
        return operand.text

    def binary(self, operator: str, a: Drawn, b: Drawn, result: Type, level: int) -> Drawn:
        space = self.source.choice((" ", " ", "  ", "\n"))
        text = f"{self.wrapped(a, level)} {operator}{space}{self.wrapped(b, level + 1)}"
        return Drawn(text, result, level)

    def minus(self, operand: Drawn) -> Drawn:
        text = self.wrapped(operand, UNARY)
        # Right before a number a minus would be part of it, before another one a comment in other dialects.
        guarded = f"({text})" if text[0] in "-0123456789" else text
        return Drawn(f"-{guarded}", operand.type, UNARY)

    def call(self, function: str, result: Type, arguments: Sequence[Drawn]) -> Drawn:
        name = self.source.choice((function, function.lower(), function.capitalize()))
        return Drawn(f"{name}({', '.join(argument.text for argument in arguments)})", result)

    # --- leaves

    def leaf(self, kind: str) -> Drawn:
        fields = self.by_kind.get(kind, [])
        if fields and (kind in ("decimal", "timestamp") or self.source.chance(70)):
            return self.source.choice(fields)
        if kind == "long":
            return self.literal(_LONGS, LONG)
        if kind == "double":
            return self.point() if self.source.chance(50) else self.literal(_EXPONENTS, DOUBLE)
        if kind == "boolean":
            return Drawn(self.source.choice(("TRUE", "FALSE", "true")), BOOLEAN)
        return Drawn(self.source.choice(_STRINGS), STRING)

    def literal(self, texts: Sequence[str], declared: Type) -> Drawn:
        text = self.source.choice(texts)
        return Drawn(text, declared, UNARY if text.startswith("-") else PRIMARY)

    def point(self) -> Drawn:
        text = self.source.choice(_POINTS)
        return Drawn(text, DOUBLE, UNARY if text.startswith("-") else PRIMARY, point=True)

    # --- numbers

    def number(self, depth: int) -> Drawn:
        kinds = ("long", "double", "decimal") if "decimal" in self.by_kind else ("long", "double")
        return self.draw(self.source.choice(kinds), depth)

    def long(self, depth: int) -> Drawn:
        if "timestamp" in self.by_kind and self.source.chance(15):
            return self.binary("-", self.timestamp(depth), self.draw("timestamp", depth), LONG, SUM)
        if self.source.chance(20):
            return self.long_function(depth)
        a = self.draw("long", depth)
        if self.source.chance(20):
            return self.minus(a) if self.source.chance(50) else self.call("ABS", LONG, [a])
        operator = self.source.choice(("+", "-", "*", "%"))
        return self.binary(operator, a, self.draw("long", depth), LONG, _level(operator))

    def long_function(self, depth: int) -> Drawn:
        kinds = ("double", "string", *(kind for kind in ("decimal", "timestamp") if kind in self.by_kind))
        form = self.source.integer(0, 3)
        if form == 0:
            return self.call("LENGTH", LONG, [self.draw("string", depth)])
        if form == 1 and "timestamp" in self.by_kind and self.source.chance(70):
            return self.part_of_time(depth)
        if form == 1:
            return self.call(self.source.choice(_WHOLE), LONG, [self.draw("long", depth)])
        return self.cast(self.draw(self.source.choice(kinds), depth), LONG)

    def part_of_time(self, depth: int) -> Drawn:
        function, time = self.source.choice(_CALENDAR), self.draw("timestamp", depth)
        if self.source.chance(50):
            return self.call(function, LONG, [time])
        zone = self.source.choice(_ZONES)
        return Drawn(f"{function}({self.wrapped(time, SUM)} IN '{zone}')", LONG)

    def cast(self, operand: Drawn, type_: Type) -> Drawn:
        name = self.source.choice(("CAST", "cast"))
        return Drawn(f"{name}({operand.text} {self.source.choice(('AS', 'as'))} {type_})", type_)

    def double(self, depth: int) -> Drawn:
        if self.source.chance(15):
            return self.double_function(depth)
        if self.source.chance(15):
            a = self.draw("double", depth)
            return self.minus(a) if self.source.chance(50) else self.call("ABS", DOUBLE, [a])
        if self.source.chance(35):
            return self.binary("/", self.number(depth), self.number(depth), DOUBLE, PRODUCT)
        a, b = self.draw("double", depth), self.number(depth)
        if a.point and b.type.kind == "decimal":
            a = self.literal(_EXPONENTS, DOUBLE)
        if self.source.chance(50):
            a, b = b, a
        operator = self.source.choice(("+", "-", "*", "%"))
        return self.binary(operator, a, b, DOUBLE, _level(operator))

    def double_function(self, depth: int) -> Drawn:
        if self.source.chance(40):
            return self.call("SQRT", DOUBLE, [self.number(depth)])
        if self.source.chance(60):
            return self.call(self.source.choice(_WHOLE), DOUBLE, [self.draw("double", depth)])
        kinds = [kind for kind in ("long", "decimal") if kind == "long" or kind in self.by_kind]
        return self.cast(self.draw(self.source.choice(kinds), depth), DOUBLE)

    def decimal(self, depth: int) -> Drawn:
        if self.source.chance(15):
            return self.decimal_function(depth)
        a = self.draw("decimal", depth)
        if self.source.chance(15):
            return self.minus(a) if self.source.chance(50) else self.call("ABS", a.type, [a])
        if self.source.chance(20):
            return self.decimal_branches(a, depth)
        b, scale = self.beside_decimal(depth)
        if self.source.chance(30):
            # The other way round, the operand that makes it decimal still stands in it.
            a, b, left_scale, scale = b, a, scale, a.type.scale
        else:
            left_scale = a.type.scale
        multiplied = left_scale + scale
        operators = ("+", "-", "%", "*", "*") if multiplied <= DECIMAL_DIGITS else ("+", "-", "%")
        operator = self.source.choice(operators)
        result = decimal(multiplied if operator == "*" else max(left_scale, scale))
        return self.binary(operator, a, b, result, _level(operator))

    def decimal_function(self, depth: int) -> Drawn:
        """Rounded to some of its digits, or to whole ones, or cast: to digits that may be too few."""
        a = self.draw(self.source.choice(("decimal", "decimal", "long")), depth)
        if a.type.kind == "decimal" and self.source.chance(60):
            if self.source.chance(50):
                return self.call(self.source.choice(_WHOLE), decimal(0), [a])
            digits = self.source.integer(0, a.type.scale)
            return self.call("ROUND", decimal(digits), [a, Drawn(str(digits), LONG)])
        precision = self.source.choice((18, 12, 4, 1))
        scale = self.source.integer(0, min(precision, 6))
        return replace(self.cast(a, Type("decimal", precision, scale)), type=decimal(scale))

    def beside_decimal(self, depth: int) -> tuple[Drawn, int]:
        """An operand that makes a decimal with another one, and its scale there."""
        if self.source.chance(20):
            point = self.point()
            return point, len(point.text.partition(".")[2])
        drawn = self.draw(self.source.choice(("decimal", "decimal", "long")), depth)
        return drawn, drawn.type.scale

    def decimal_branches(self, a: Drawn, depth: int) -> Drawn:
        """A decimal with others of its scale: literals with no more digits, or NULL, or itself."""
        points = [text for text in _POINTS if len(text.partition(".")[2]) <= a.type.scale <= 15]
        other = Drawn(self.source.choice([*points, "NULL", a.text]), a.type)
        if self.source.chance(50):
            return self.call("COALESCE", a.type, [a, other])
        return self.case([(self.draw("boolean", depth), a)], other)

    # --- the rest

    def string(self, depth: int) -> Drawn:
        form = self.source.integer(0, 5)
        if form <= 1:
            return self.call(self.source.choice(("LOWER", "UPPER")), STRING, [self.draw("string", depth)])
        if form == 2:
            return self.call("TRIM", STRING, [self.draw("string", depth)])
        if form == 3:
            return self.binary("||", self.draw("string", depth), self.draw("string", depth), STRING, SUM)
        if form == 4:
            return self.cast(self.draw("long", depth), STRING)
        places = [
            self.literal(_PLACES, LONG) if self.source.chance(70) else self.draw("long", depth)
            for _ in range(self.source.integer(1, 2))
        ]
        return self.call("SUBSTR", STRING, [self.draw("string", depth), *places])

    def timestamp(self, depth: int) -> Drawn:
        if self.source.chance(15):
            return self.cast(self.draw("long", depth), TIMESTAMP)
        operator = self.source.choice(("+", "-"))
        return self.binary(operator, self.draw("timestamp", depth), self.draw("long", depth), TIMESTAMP, SUM)

    def branches(self, kind: str, depth: int) -> Drawn:
        """CASE, COALESCE, GREATEST or LEAST of one type; doubles have longs among them; NULLIF."""
        kinds = [kind, source_kind] if (source_kind := self.widened(kind)) else [kind]
        a, b = self.draw(kind, depth - 1), self.draw(kinds[-1], depth - 1)
        if self.source.chance(15):
            other = self.number(depth - 1) if a.type.numeric and not a.point else self.draw(kind, depth - 1)
            return self.call("NULLIF", a.type, [a, other])
        if self.source.chance(50):
            function = self.source.choice(("COALESCE", "COALESCE", "GREATEST", "LEAST"))
            others = [b] if self.source.chance(80) else [b, Drawn("NULL", a.type)]
            return self.call(function, a.type, [a, *others] if self.source.chance(50) else [*others, a])
        pairs = [(self.draw("boolean", depth - 1), a)]
        if self.source.chance(30):
            pairs.append((self.draw("boolean", depth - 1), b))
        return self.case(pairs, self.source.choice((b, Drawn("NULL", a.type), None)))

    def widened(self, kind: str) -> str | None:
        return "long" if kind == "double" and self.source.chance(40) else None

    def case(self, pairs: Sequence[tuple[Drawn, Drawn]], otherwise: Drawn | None) -> Drawn:
        subject = ""
        if self.source.chance(15):
            subject = f" {self.draw('long', 0).text}"
            pairs = [(self.literal(_LONGS, LONG), result) for _, result in pairs]
        body = "".join(f" WHEN {condition.text} THEN {result.text}" for condition, result in pairs)
        last = "" if otherwise is None else f" ELSE {otherwise.text}"
        return Drawn(f"CASE{subject}{body}{last} END", pairs[0][1].type)

    # --- predicates

    def boolean(self, depth: int) -> Drawn:
        form = self.source.integer(0, 9)
        if form <= 3:
            a, b = self.comparable(depth)
            operator = self.source.choice(_COMPARISONS)
            text = f"{self.wrapped(a, SUM)} {operator} {self.wrapped(b, SUM)}"
            return Drawn(text, BOOLEAN, PREDICATE)
        if form <= 5:
            operator, level = self.source.choice((("AND", AND), ("OR", OR), ("and", AND)))
            both = self.draw("boolean", depth), self.draw("boolean", depth)
            return self.binary(operator, *both, BOOLEAN, level)
        if form == 6:
            return Drawn(f"NOT {self.wrapped(self.draw('boolean', depth), NOT)}", BOOLEAN, NOT)
        if form == 7:
            return self.listed(depth)
        negation = self.source.choice(("", "NOT "))
        if form == 8:
            operand = self.draw(self.source.choice(self.kinds), depth)
            return Drawn(f"{self.wrapped(operand, SUM)} IS {negation}NULL", BOOLEAN, PREDICATE)
        operand = self.draw("string", depth)
        pattern = self.source.choice(_PATTERNS)
        return Drawn(f"{self.wrapped(operand, SUM)} {negation}LIKE {pattern}", BOOLEAN, PREDICATE)

    def comparable(self, depth: int) -> tuple[Drawn, Drawn]:
        kind = self.source.choice(self.kinds)
        a = self.draw(kind, depth)
        return a, self.number(depth) if a.type.numeric else self.draw(kind, depth)

    def listed(self, depth: int) -> Drawn:
        """IN or BETWEEN; timestamps, which have no literals, and booleans stand beside their like."""
        negation = self.source.choice(("", "NOT "))
        a, b = self.comparable(depth)
        if self.source.chance(40):
            high = self.source.choice((b, self.leaf(a.type.kind)))
            bounds = f"{self.wrapped(b, SUM)} AND {self.wrapped(high, SUM)}"
            return Drawn(f"{self.wrapped(a, SUM)} {negation}BETWEEN {bounds}", BOOLEAN, PREDICATE)
        kinds = [kind for kind in self.kinds if kind in ("long", "double", "decimal")]
        members = [
            self.leaf(self.source.choice(kinds) if a.type.numeric else a.type.kind).text
            for _ in range(self.source.integer(1, 4))
        ]
        if self.source.chance(20):
            members.append("NULL")
        return Drawn(f"{self.wrapped(a, SUM)} {negation}IN ({', '.join(members)})", BOOLEAN, PREDICATE)


def _level(operator: str) -> int:
    return SUM if operator in "+-" else PRODUCT
