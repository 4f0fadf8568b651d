"""The parser of metric queries: recursive descent, one method per rule, nothing clever."""

from tests.oracle.durations import QUERY_UNIT_MS
from tests.oracle.errors import QueryRefused
from tests.oracle.lexer import Token, tokens
from tests.oracle.syntax import (
    Binary,
    Call,
    Case,
    Cast,
    Derived,
    Expression,
    Field,
    In,
    IsNull,
    Like,
    Literal,
    Metric,
    Negation,
    Not,
    Window,
)

AGGREGATORS = {
    "count": "count",
    "sum": "sum",
    "avg": "avg",
    "stddev": "stddev_samp",
    "stddev_samp": "stddev_samp",
    "stddev_pop": "stddev_pop",
    "var_samp": "var_samp",
    "var_pop": "var_pop",
    "min": "min",
    "max": "max",
    "first": "first",
    "last": "last",
    "prev": "prev",
    "count_distinct": "count_distinct",
}
CALENDAR = ("hour", "minute", "day_of_week", "day", "month", "year")
# How many arguments each takes; None is any number.
_FUNCTIONS: dict[str, tuple[int | None, ...]] = {
    **dict.fromkeys(("abs", "lower", "upper", "length", "trim", "floor", "ceil", "sqrt"), (1,)),
    **dict.fromkeys(("coalesce", "greatest", "least"), (None,)),
    "nullif": (2,),
    "round": (1, 2),
    "substr": (2, 3),
}
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def parse_query(text: str) -> list[Metric]:
    """The metrics of a query, one per select item, in order; raises QueryRefused."""
    return _Parser(text).query()


def parse_statement(text: str) -> list[Metric] | list[Derived]:
    """What a query or a DERIVE makes, in order; raises QueryRefused."""
    parser = _Parser(text)
    return parser.derivation() if parser.word("DERIVE") else parser.query()


def parse_expression(text: str) -> Expression:
    """One expression and nothing after it; raises QueryRefused."""
    parser = _Parser(text)
    expression = parser.expression()
    parser.end()
    return expression


def _both(where: Expression | None, condition: Expression | None) -> Expression | None:
    """What a FILTER leaves of what WHERE has left."""
    if where is None or condition is None:
        return condition if where is None else where
    return Binary("and", where, condition)


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = tokens(text)
        self.at = 0

    # --- tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def refuse(self, wanted: str) -> QueryRefused:
        found = self.token.text or self.token.kind
        return QueryRefused(f"at {self.token.position}: expected {wanted}, found {found!r}")

    def accept(self, kind: str, *texts: str) -> str | None:
        """The text of the next token where it is one of these, which is then passed; else None."""
        token = self.token
        if token.kind != kind or (texts and token.text not in texts):
            return None
        self.at += 1
        return token.text

    def expect(self, kind: str, *texts: str) -> str:
        found = self.accept(kind, *texts)
        if found is None:
            raise self.refuse(" or ".join(texts) or kind)
        return found

    def keyword(self, *texts: str) -> str | None:
        return self.accept("keyword", *texts)

    def word(self, text: str) -> bool:
        """Whether the next token is this word, which is a name elsewhere; it is passed then."""
        found = self.token.kind == "name" and self.token.text.upper() == text
        self.at += found
        return found

    def name(self) -> str:
        """A name of a metric, a stream or a field to group by: keywords may be names there."""
        if self.token.kind not in ("name", "keyword"):
            raise self.refuse("a name")
        self.at += 1
        token = self.tokens[self.at - 1]
        return token.spelling or token.text

    def end(self) -> None:
        self.expect("end")

    # --- queries

    def query(self) -> list[Metric]:
        self.expect("keyword", "SELECT")
        items = [self.select_item()]
        while self.accept("symbol", ","):
            items.append(self.select_item())
        self.expect("keyword", "FROM")
        stream = self.name()
        where = self.expression() if self.keyword("WHERE") else None
        group_by: list[str] = []
        if self.keyword("GROUP"):
            self.expect("keyword", "BY")
            group_by.append(self.name())
            while self.accept("symbol", ","):
                group_by.append(self.name())
        self.expect("keyword", "OVER")
        window = self.window()
        excludes_current = self.word("EXCLUDE")
        if excludes_current and not self.word("CURRENT"):
            raise self.refuse("CURRENT")
        self.end()
        return [
            Metric(n, a, x, stream, _both(where, p), tuple(group_by), window, excludes_current)
            for n, a, x, p in items
        ]

    def derivation(self) -> list[Derived]:
        """What comes behind the word DERIVE."""
        items = [self.derived_item()]
        while self.accept("symbol", ","):
            items.append(self.derived_item())
        self.expect("keyword", "FROM")
        stream = self.name()
        self.end()
        return [Derived(name, expression, stream) for name, expression in items]

    def derived_item(self) -> tuple[str, Expression]:
        expression = self.expression()
        self.expect("keyword", "AS")
        return self.name(), expression

    def select_item(self) -> tuple[str, str, Expression | None, Expression | None]:
        name = self.expect("name").lower()
        if name not in AGGREGATORS:
            raise QueryRefused(f"{name!r} is no aggregator")
        aggregator, argument = AGGREGATORS[name], None
        self.expect("symbol", "(")
        if aggregator != "count" or not self.accept("symbol", "*"):
            if aggregator == "count" and self.keyword("DISTINCT"):
                aggregator = "count_distinct"
            argument = self.expression()
        self.expect("symbol", ")")
        condition = None
        if self.word("FILTER"):
            self.expect("symbol", "(")
            self.expect("keyword", "WHERE")
            condition = self.expression()
            self.expect("symbol", ")")
        if not self.keyword("AS"):
            raise self.refuse("AS: the oracle makes no names")
        return self.name(), aggregator, argument, condition

    def window(self) -> Window:
        kind = self.expect("keyword", "SLIDING", "TUMBLING", "INFINITE").lower()
        size_ms = 0 if kind == "infinite" else self.duration()
        delay_ms = 0
        if self.keyword("DELAYED"):
            self.expect("keyword", "BY")
            delay_ms = self.duration()
        return Window(kind, size_ms, delay_ms)

    def duration(self) -> int:
        count = int(self.expect("integer"))
        unit = self.expect("name").upper()
        unit_ms = QUERY_UNIT_MS.get(unit) or QUERY_UNIT_MS.get(unit.removesuffix("S"))
        if unit_ms is None or count == 0:
            raise QueryRefused(f"{count} {unit} is no duration")
        return count * unit_ms

    # --- expressions, from the loosest binding to the tightest

    def expression(self) -> Expression:
        left = self.conjunction()
        while self.keyword("OR"):
            left = Binary("or", left, self.conjunction())
        return left

    def conjunction(self) -> Expression:
        left = self.negation()
        while self.keyword("AND"):
            left = Binary("and", left, self.negation())
        return left

    def negation(self) -> Expression:
        return Not(self.negation()) if self.keyword("NOT") else self.predicate()

    def predicate(self) -> Expression:
        left = self.sum()
        operator = self.accept("symbol", *_COMPARISONS)
        if operator:
            return Binary(operator, left, self.sum())
        if self.keyword("IS"):
            negated = self.keyword("NOT")
            self.expect("keyword", "NULL")
            return Not(IsNull(left)) if negated else IsNull(left)
        negated = self.keyword("NOT")
        if self.keyword("IN"):
            found: Expression = In(left, self.list_of_expressions())
        elif self.keyword("BETWEEN"):
            low = self.sum()
            self.expect("keyword", "AND")
            found = Binary("and", Binary(">=", left, low), Binary("<=", left, self.sum()))
        elif self.keyword("LIKE"):
            found = Like(left, self.expect("string"))
        elif negated:
            raise self.refuse("IN, BETWEEN or LIKE")
        else:
            return left
        return Not(found) if negated else found

    def list_of_expressions(self) -> tuple[Expression, ...]:
        self.expect("symbol", "(")
        members = [self.expression()]
        while self.accept("symbol", ","):
            members.append(self.expression())
        self.expect("symbol", ")")
        return tuple(members)

    def sum(self) -> Expression:
        left = self.product()
        while operator := self.accept("symbol", "+", "-", "||"):
            left = Binary(operator, left, self.product())
        return left

    def product(self) -> Expression:
        left = self.signed()
        while operator := self.accept("symbol", "*", "/", "%"):
            left = Binary(operator, left, self.signed())
        return left

    def signed(self) -> Expression:
        if not self.accept("symbol", "-"):
            return self.primary()
        if self.token.kind in ("integer", "point", "exponent"):
            number = self.number()
            return Literal(number.kind, "-" + number.text)
        return Negation(self.signed())

    def number(self) -> Literal:
        token = self.token
        self.at += 1
        return Literal(token.kind, token.text)

    def primary(self) -> Expression:
        if self.token.kind in ("integer", "point", "exponent"):
            return self.number()
        if self.token.kind == "string":
            return Literal("string", self.expect("string"))
        if word := self.keyword("TRUE", "FALSE", "NULL"):
            return Literal("null") if word == "NULL" else Literal("boolean", word.lower())
        if self.keyword("CASE"):
            return self.case()
        if self.accept("symbol", "("):
            inner = self.expression()
            self.expect("symbol", ")")
            return inner
        name = self.expect("name")
        if self.token.kind == "symbol" and self.token.text == "(":
            return self.call(name.lower())
        return Field(name)

    def call(self, function: str) -> Expression:
        if function == "cast":
            return self.cast()
        if function in CALENDAR:
            return self.part_of_time(function)
        if function not in _FUNCTIONS:
            raise QueryRefused(f"{function!r} is no function")
        arguments = self.list_of_expressions()
        allowed = _FUNCTIONS[function]
        if not (None in allowed or len(arguments) in allowed):
            raise QueryRefused(f"{function} does not take {len(arguments)} arguments")
        if function in ("greatest", "least") and len(arguments) < 2:
            raise QueryRefused(f"{function} of one value")
        return Call(function, arguments)

    def part_of_time(self, function: str) -> Expression:
        self.expect("symbol", "(")
        # A time is no predicate, so that what `IN` follows is a sum.
        operand = self.sum()
        zone = self.expect("string") if self.keyword("IN") else "UTC"
        self.expect("symbol", ")")
        return Call(function, (operand,), zone)

    def cast(self) -> Expression:
        self.expect("symbol", "(")
        operand = self.expression()
        self.expect("keyword", "AS")
        type_ = self.expect("name").lower()
        if self.accept("symbol", "("):
            precision = self.expect("integer")
            self.expect("symbol", ",")
            type_ += f"({precision},{self.expect('integer')})"
            self.expect("symbol", ")")
        self.expect("symbol", ")")
        return Cast(operand, type_)

    def case(self) -> Expression:
        subject = None
        if (self.token.kind, self.token.text) != ("keyword", "WHEN"):
            subject = self.expression()
        branches: list[tuple[Expression, Expression]] = []
        while self.keyword("WHEN"):
            condition = self.expression()
            if subject is not None:
                condition = Binary("=", subject, condition)
            self.expect("keyword", "THEN")
            branches.append((condition, self.expression()))
        if not branches:
            raise self.refuse("WHEN")
        otherwise = self.expression() if self.keyword("ELSE") else Literal("null")
        self.expect("keyword", "END")
        return Case(tuple(branches), otherwise)
