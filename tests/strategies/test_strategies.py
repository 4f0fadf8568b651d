"""That what is drawn is valid, the same for the same seed, and reaches all that it should."""

from collections import Counter

import pytest
from hypothesis import given, settings

from tests.oracle.derived import names_in
from tests.oracle.expressions import evaluate
from tests.oracle.inference import infer
from tests.oracle.query import AGGREGATORS, parse_expression
from tests.oracle.steps import AddMetrics, Score
from tests.oracle.types import parse_type
from tests.strategies.case import Case, oracle, replies, task_logs
from tests.strategies.drawn import cases, expression_cases
from tests.strategies.generate import ExpressionCase, Profile
from tests.strategies.seeded import case, expression_case

ONE_TASK = Profile(spread=False, explicit_warm=True)


@pytest.mark.parametrize("profile", [Profile(), ONE_TASK])
def test_every_case_is_valid_by_the_semantics(profile: Profile) -> None:
    for seed in range(150):
        drawn = case(seed, 40, profile)
        for step, reply in zip(drawn.steps, replies(drawn), strict=True):
            assert (reply is not None) == isinstance(step, Score), f"seed {seed}"


def test_a_seed_is_a_case() -> None:
    assert case(7, 30) == case(7, 30)
    assert case(7, 30) != case(8, 30)
    assert expression_case(7) == expression_case(7)


def test_batches_are_the_steps_in_order() -> None:
    for seed in range(100):
        drawn = case(seed, 50)
        batches = list(drawn.batches())
        assert all(batch.steps for batch in batches)
        assert sum((batch.steps for batch in batches), ()) == drawn.steps
        assert sum(batch.restart for batch in batches) == len(drawn.restarts)


def test_cases_reach_every_corner() -> None:
    seen: Counter[str] = Counter()
    for seed in range(200):
        drawn = case(seed, 60, Profile(explicit_warm=seed % 2 == 0))
        player = oracle(drawn)
        for reply in replies(drawn, player):
            if reply is not None:
                seen.update(reply.keys())
                seen.update(reply.get("late", {}).values())
        seen.update(type(step).__name__ for step in drawn.steps)
        seen["computed partitioner"] += not set(player.stream.partitioners).isdisjoint(player.stream.computed)
        for metric in player.catalogue.metrics.values():
            read = {*metric.group_by, *names_in((metric.argument, metric.where))} & set(
                player.stream.computed
            )
            seen["computed field"] += bool(read)
            seen["group by computed"] += not read.isdisjoint(metric.group_by)
            seen["computed later"] += any(name.startswith("d") for name in read)
            seen.update((metric.aggregator, metric.window.kind, f"group by {len(metric.group_by)}"))
            seen["where"] += metric.where is not None
            seen["delayed"] += metric.window.delay_ms > 0
        seen["restart"] += len(drawn.restarts)
    wanted = {*AGGREGATORS.values(), "count_distinct", "sliding", "tumbling", "infinite", "where", "delayed"}
    wanted |= {"late", "duplicate", "warming", "partial", "rewritten", "discarded", "restart"}
    wanted |= {"AddMetrics", "WarmMetric", "DropMetric", "AddField", "SetLateness", "SetRetention"}
    wanted |= {"group by 0", "group by 1", "group by 2", "DropField"}
    wanted |= {"computed field", "computed partitioner", "group by computed", "computed later"}
    assert {name for name in wanted if seen[name] < 10} == set()


def test_expressions_have_the_type_they_were_drawn_for_and_mostly_a_value() -> None:
    operations: Counter[str] = Counter()
    nulls = total = 0
    for seed in range(1_500):
        drawn = expression_case(seed, rows=3)
        typed = infer(parse_expression(drawn.text), {n: parse_type(t) for n, t in drawn.fields.items()})
        assert typed.type == drawn.type, f"seed {seed}: {drawn.text}"
        operations.update(_operations(typed))
        values = [evaluate(typed, row) for row in drawn.typed_rows()]
        nulls, total = nulls + values.count(None), total + len(values)
    wanted = set("+-*/%=<>") | {"<>", "<=", ">=", "and", "or", "not", "in", "like", "is_null", "neg"}
    wanted |= {"case", "coalesce", "abs", "lower", "upper", "to_double"}
    assert {name for name in wanted if operations[name] < 20} == set()
    assert nulls < total * 0.6


def _operations(typed: object) -> Counter[str]:
    found: Counter[str] = Counter([getattr(typed, "operation", "")])
    for argument in getattr(typed, "arguments", ()):
        found.update(_operations(argument))
    return found


def test_the_logs_of_tasks_hold_what_was_sent_there() -> None:
    for seed in range(40):
        drawn = case(seed, 40, ONE_TASK)
        (log,) = task_logs(drawn)
        answered = sum(reply is not None for _, reply in log.records)
        assert answered <= sum(isinstance(step, Score) for step in drawn.steps)
        assert sum(isinstance(step, AddMetrics) for step in drawn.steps) <= len(log.records) - answered


@given(cases(max_steps=12))
@settings(max_examples=25)
def test_drawn_cases_are_valid(drawn: Case) -> None:
    assert len(replies(drawn)) == len(drawn.steps)


@given(expression_cases())
@settings(max_examples=50)
def test_drawn_expressions_are_valid(drawn: ExpressionCase) -> None:
    typed = infer(parse_expression(drawn.text), {n: parse_type(t) for n, t in drawn.fields.items()})
    assert typed.type == drawn.type
