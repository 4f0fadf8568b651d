"""Random syntax trees, of every node and every place it may stand."""

import math

from hypothesis import strategies as st

from railgun.language import ast
from railgun.language.types import parse_type

WORDS = ["a", "b", "amount", "over", "case", "NOT", "day", "Null", "distinct", "when", "first", "_x", "sum"]

names = st.sampled_from(WORDS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
fields = names.map(ast.FieldReference)
literals = st.one_of(
    st.just(ast.NullLiteral()),
    st.booleans().map(ast.BooleanLiteral),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5).map(ast.StringLiteral),
    st.integers(-(2**63), 2**63 - 1).map(ast.LongLiteral),
    st.builds(ast.DecimalLiteral, st.integers(-(10**30), 10**30), st.integers(1, 40)),
    st.floats(allow_nan=False, allow_infinity=False)
    .filter(lambda v: v != 0.0 or math.copysign(1, v) > 0)
    .map(ast.DoubleLiteral),
)
patterns = st.text("ab%_'é", max_size=5).flatmap(
    lambda text: st.sampled_from([text, text + "\\\\", "\\%" + text])
)


_ARGUMENTS = {
    ast.Function.COALESCE: (1, 3),
    ast.Function.GREATEST: (2, 3),
    ast.Function.LEAST: (2, 3),
    ast.Function.NULLIF: (2, 2),
    ast.Function.ROUND: (1, 2),
    ast.Function.SUBSTR: (2, 3),
}
_TYPES = [parse_type(text) for text in ("long", "double", "string", "timestamp", "boolean", "decimal(12,2)")]


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> ast.Expression:
    """An expression, drawn node by node: Hypothesis would write out in full what nested strategies are."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(draw(st.sampled_from([literals, fields, fields])))

    def child() -> ast.Expression:
        return draw(expressions(depth - 1))

    def some(least: int) -> tuple[ast.Expression, ...]:
        return tuple(child() for _ in range(draw(st.integers(least, 3))))

    match draw(st.integers(0, 13)):
        case 0:
            return ast.Arithmetic(draw(st.sampled_from(ast.ArithmeticOperator)), child(), child())
        case 1:
            return ast.Comparison(draw(st.sampled_from(ast.ComparisonOperator)), child(), child())
        case 2:
            return ast.Negation(child())
        case 3:
            return ast.Not(child())
        case 4:
            return _chain(ast.And, some(2))
        case 5:
            return _chain(ast.Or, some(2))
        case 6:
            return ast.Between(child(), child(), child())
        case 7:
            return ast.InList(child(), some(1))
        case 8:
            return ast.Like(child(), draw(patterns))
        case 9:
            return ast.IsNull(child())
        case 10:
            function = draw(st.sampled_from(ast.Function))
            least, most = _ARGUMENTS.get(function, (1, 1))
            return ast.Call(function, tuple(child() for _ in range(draw(st.integers(least, most)))))
        case 11:
            zone = draw(st.sampled_from(["Europe/Lisbon", "it's", ""]))
            return ast.Call(draw(st.sampled_from(sorted(ast.CALENDAR))), (child(),), zone)
        case 12:
            return ast.Cast(child(), draw(st.sampled_from(_TYPES)))
        case _:
            operand, default = (child() if draw(st.booleans()) else None for _ in range(2))
            branches = tuple((child(), child()) for _ in range(draw(st.integers(1, 2))))
            return ast.Case(operand, branches, default)


def _chain(kind: type[ast.And] | type[ast.Or], operands: tuple[ast.Expression, ...]) -> ast.Expression:
    """As the parser makes it: an AND within an AND is one AND."""
    return kind(
        tuple(
            part
            for operand in operands
            for part in (operand.operands if type(operand) is kind else (operand,))
        )
    )


durations = st.integers(1, 1 << 48) | st.sampled_from([1_000, 60_000, 604_800_000, 90_000])
words = st.sampled_from([word for word in WORDS if word[0].isalpha()])
metric_names = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,10}", fullmatch=True)
given_names = st.none() | metric_names


@st.composite
def queries(draw: st.DrawFn) -> ast.Query:
    """A whole query."""
    items = [
        ast.SelectItem(
            draw(st.sampled_from(ast.Aggregator)),
            draw(expressions()),
            draw(given_names),
            draw(expressions()) if draw(st.booleans()) else None,
        )
        for _ in range(draw(st.integers(1, 2)))
    ]
    if draw(st.booleans()):
        items.append(ast.SelectItem(ast.Aggregator.COUNT, None, draw(given_names)))
    kind = draw(st.sampled_from(ast.WindowKind))
    size_ms = None if kind is ast.WindowKind.INFINITE else draw(durations)
    return ast.Query(
        tuple(items),
        ast.StreamName(draw(names)),
        draw(expressions()) if draw(st.booleans()) else None,
        tuple(draw(st.lists(fields, max_size=3))),
        ast.Window(kind, size_ms, draw(st.just(0) | durations)),
        draw(st.booleans()),
    )


@st.composite
def derivations(draw: st.DrawFn) -> ast.Derivation:
    """A whole DERIVE."""
    items = [
        ast.DerivedItem(draw(expressions()), draw(metric_names | words))
        for _ in range(draw(st.integers(1, 3)))
    ]
    return ast.Derivation(tuple(items), ast.StreamName(draw(names)))
