"""Random syntax trees, of every node and every place it may stand."""

import math

from hypothesis import strategies as st

from railgun.language import ast

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


def _chain(kind: type, children: st.SearchStrategy) -> st.SearchStrategy:
    operand = children.filter(lambda child: not isinstance(child, kind))
    return st.lists(operand, min_size=2, max_size=3).map(lambda operands: kind(tuple(operands)))


def _above(children: st.SearchStrategy) -> st.SearchStrategy:
    branches = st.lists(st.tuples(children, children), min_size=1, max_size=2).map(tuple)
    one_argument = st.sampled_from([ast.Function.ABS, ast.Function.LOWER, ast.Function.UPPER])
    return st.one_of(
        st.builds(ast.Arithmetic, st.sampled_from(ast.ArithmeticOperator), children, children),
        st.builds(ast.Comparison, st.sampled_from(ast.ComparisonOperator), children, children),
        st.builds(ast.Negation, children),
        st.builds(ast.Not, children),
        _chain(ast.And, children),
        _chain(ast.Or, children),
        st.builds(ast.Between, children, children, children),
        st.builds(ast.InList, children, st.lists(children, min_size=1, max_size=3).map(tuple)),
        st.builds(ast.Like, children, patterns),
        st.builds(ast.IsNull, children),
        st.builds(ast.Case, st.none() | children, branches, st.none() | children),
        st.builds(lambda function, child: ast.Call(function, (child,)), one_argument, children),
        st.builds(
            lambda arguments: ast.Call(ast.Function.COALESCE, tuple(arguments)),
            st.lists(children, min_size=1, max_size=3),
        ),
    )


expressions = st.recursive(literals | fields | fields, _above, max_leaves=12)
durations = st.integers(1, 1 << 48) | st.sampled_from([1_000, 60_000, 604_800_000, 90_000])
delays = st.just(0) | durations
windows = st.one_of(
    st.builds(
        ast.Window, st.sampled_from([ast.WindowKind.SLIDING, ast.WindowKind.TUMBLING]), durations, delays
    ),
    st.builds(ast.Window, st.just(ast.WindowKind.INFINITE), st.none(), delays),
)
given_names = st.none() | st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,10}", fullmatch=True)
select_items = st.one_of(
    st.builds(ast.SelectItem, st.just(ast.Aggregator.COUNT), st.none(), given_names),
    st.builds(ast.SelectItem, st.sampled_from(ast.Aggregator), expressions, given_names),
)
queries = st.builds(
    ast.Query,
    st.lists(select_items, min_size=1, max_size=3).map(tuple),
    names.map(ast.StreamName),
    st.none() | expressions,
    st.lists(fields, max_size=3).map(tuple),
    windows,
)
