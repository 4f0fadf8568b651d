"""Every expression means what the brute-force oracle says, on every row, to the bit."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from railgun.language.errors import QueryError
from railgun.language.parser import parse_query
from railgun.language.resolve import resolve
from railgun.language.typed import TypedExpression
from tests.language.batch import Value, evaluate_all
from tests.language.expression_text import FIELDS, expressions, rows
from tests.oracle import expressions as oracle
from tests.oracle.errors import QueryRefused
from tests.oracle.inference import Typed, infer
from tests.oracle.query import parse_expression
from tests.oracle.types import parse_type

ORACLE_FIELDS = {name: parse_type(str(type_)) for name, type_ in FIELDS.items()}
KINDS = ("long", "double", "decimal", "string", "timestamp", "boolean")


def typed(text: str) -> TypedExpression | None:
    try:
        metric = resolve(parse_query(f"SELECT first({text}) FROM s OVER INFINITE"), FIELDS, "s")[0]
    except QueryError:
        return None
    return metric.argument


def oracle_typed(text: str) -> Typed | None:
    try:
        return infer(parse_expression(text), ORACLE_FIELDS)
    except QueryRefused:
        return None


def check(texts: Sequence[str], events: Sequence[Mapping[str, Value]]) -> int:
    """Compare both readings of these expressions on these rows; how many had a value."""
    pairs = [(text, typed(text), oracle_typed(text)) for text in texts]
    for text, ours, theirs in pairs:
        assert (ours is None) == (theirs is None), f"one refuses: {text}"
    known = [(text, ours, theirs) for text, ours, theirs in pairs if ours is not None and theirs is not None]
    found = evaluate_all([ours for _, ours, _ in known], FIELDS, events)
    for (text, ours, theirs), values in zip(known, found, strict=True):
        assert (str(ours.type.kind), ours.type.scale) == (theirs.type.kind, theirs.type.scale), text
        expected = [oracle.evaluate(theirs, dict(event)) for event in events]
        for event, value, right in zip(events, values, expected, strict=True):
            assert value == right, f"{text} over {event}: {value!r}, not {right!r}"
            assert type(value) is type(right), f"{text} over {event}"
    return sum(value is not None for values in found for value in values)


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from(KINDS).flatmap(expressions), min_size=1, max_size=4),
    st.lists(rows(), min_size=1, max_size=8),
)
def test_values_are_the_oracles(texts: list[str], events: list[dict[str, Value]]) -> None:
    check(texts, events)


@pytest.mark.torture
@settings(max_examples=20_000)
@given(
    st.lists(st.sampled_from(KINDS).flatmap(lambda kind: expressions(kind, 4)), min_size=1, max_size=4),
    st.lists(rows(), min_size=1, max_size=8),
)
def test_values_are_the_oracles_at_length(texts: list[str], events: list[dict[str, Value]]) -> None:
    check(texts, events)
