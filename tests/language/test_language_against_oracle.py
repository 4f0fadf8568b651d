"""Every expression means what the brute-force oracle says, on every row, to the bit."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from railgun.language.errors import QueryError
from railgun.language.parser import parse_query
from railgun.language.resolve import resolve
from railgun.language.typed import TypedExpression
from railgun.language.types import Type, parse_type
from tests.counts import examples
from tests.language.batch import Value, evaluate_all
from tests.language.expression_text import FIELDS, expressions, rows
from tests.oracle import expressions as oracle
from tests.oracle import types as oracle_types
from tests.oracle.compare import same_value
from tests.oracle.errors import QueryRefused
from tests.oracle.inference import Typed, infer
from tests.oracle.query import parse_expression
from tests.strategies.seeded import expression_case

KINDS = ("long", "double", "decimal", "string", "timestamp", "boolean")
Fields = Mapping[str, Type]


def typed(text: str, fields: Fields) -> TypedExpression | None:
    try:
        metric = resolve(parse_query(f"SELECT first({text}) FROM s OVER INFINITE"), fields, "s")[0]
    except QueryError:
        return None
    return metric.argument


def oracle_typed(text: str, fields: Fields) -> Typed | None:
    declared = {name: oracle_types.parse_type(str(type_)) for name, type_ in fields.items()}
    try:
        return infer(parse_expression(text), declared)
    except QueryRefused:
        return None


def check(texts: Sequence[str], fields: Fields, events: Sequence[Mapping[str, Value]]) -> int:
    """Compare both readings of these expressions on these rows; how many had a value."""
    pairs = [(text, typed(text, fields), oracle_typed(text, fields)) for text in texts]
    for text, ours, theirs in pairs:
        assert (ours is None) == (theirs is None), f"one refuses: {text}"
    known = [(text, ours, theirs) for text, ours, theirs in pairs if ours is not None and theirs is not None]
    found = evaluate_all([ours for _, ours, _ in known], fields, events)
    for (text, ours, theirs), values in zip(known, found, strict=True):
        assert (str(ours.type.kind), ours.type.scale) == (theirs.type.kind, theirs.type.scale), text
        for event, value in zip(events, values, strict=True):
            right = oracle.evaluate(theirs, dict(event))
            assert same_value(right, value), f"{text} over {event}: {value!r}, not {right!r}"
    return sum(value is not None for values in found for value in values)


def check_seeds(seeds: range) -> None:
    values = cells = 0
    for seed in seeds:
        case = expression_case(seed)
        fields = {name: parse_type(text) for name, text in case.fields.items()}
        assert typed(case.text, fields) is not None, f"refused, seed {seed}: {case.text}"
        events = case.typed_rows()
        try:
            values += check([case.text], fields, events)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        cells += len(events)
    # Else nulls hide what the expressions compute.
    assert values > cells / 4


def test_values_are_the_oracles_by_seed() -> None:
    check_seeds(range(300))


@settings(max_examples=examples(40, 100))
@given(
    st.lists(st.sampled_from(KINDS).flatmap(expressions), min_size=1, max_size=4),
    st.lists(rows(), min_size=1, max_size=8),
)
def test_values_and_refusals_are_the_oracles(texts: list[str], events: list[dict[str, Value]]) -> None:
    check(texts, FIELDS, events)


@pytest.mark.torture
@pytest.mark.parametrize("part", range(10))
def test_values_are_the_oracles_by_seed_at_length(part: int) -> None:
    check_seeds(range(1_000_000 + part * 5_000, 1_000_000 + (part + 1) * 5_000))


@pytest.mark.torture
@settings(max_examples=2_000)
@given(
    st.lists(st.sampled_from(KINDS).flatmap(lambda kind: expressions(kind, 4)), min_size=1, max_size=4),
    st.lists(rows(), min_size=1, max_size=8),
)
def test_values_and_refusals_are_the_oracles_at_length(
    texts: list[str], events: list[dict[str, Value]]
) -> None:
    check(texts, FIELDS, events)
