"""An explanation says what is shared, and says the same as the program that runs."""

import json

import pytest
from hypothesis import given, settings

from railgun.catalog.definitions import parse_definitions
from railgun.catalog.model import Definitions
from railgun.explain.analysis import Home, explain_stream
from railgun.explain.dot import render_dot
from railgun.explain.explanation import EdgePlan, PartitionerPlan, render_json
from railgun.explain.svg import render_svg
from railgun.explain.tree import render_tree
from railgun.plan.dag import build_plan
from railgun.plan.program import Generation, Program, ProgramBuilder
from railgun.state.rows.context import LINE_WORDS
from tests.counts import examples
from tests.explain.explained import by_card, explained
from tests.strategies.case import Case
from tests.strategies.drawn import cases

WEEK_MS = 7 * 86_400_000


def test_metrics_are_at_their_home() -> None:
    [stream] = explained().streams
    assert [(plan.partitioner, plan.tasks, plan.metrics) for plan in stream.partitioners] == [
        ("card", 4, 9),
        ("merchant", 4, 0),
        ("*", 1, 1),
    ]


def test_an_edge_is_the_tail_of_one_window_and_the_head_of_another() -> None:
    plan = by_card()
    week, before = "SLIDING 7 DAYS", "SLIDING 7 DAYS DELAYED BY 7 DAYS"
    assert plan.edges == (
        EdgePlan(0, False, (week, "TUMBLING 1 DAY"), ()),
        EdgePlan(WEEK_MS, True, (before,), (week,)),
        EdgePlan(2 * WEEK_MS, True, (), (before,)),
    )
    assert plan.cursors == 2


def test_windows_say_which_times_they_hold() -> None:
    assert [window.interval for window in by_card().windows] == ["(T − 7d, T]", "(T − 14d, T − 7d]", "[B, T]"]


def test_aggregates_of_one_argument_share_their_cells() -> None:
    week, _, day = by_card().groups
    assert [(cell.kind, cell.of, cell.metrics) for cell in week.cells] == [
        ("count", "*", ("n_7d",)),
        ("count", "amount", ("sum_7d", "avg_7d", "dev_7d")),
        ("sum", "amount", ("sum_7d", "avg_7d", "dev_7d")),
        ("sum of squares", "amount", ("dev_7d",)),
    ]
    assert [(cell.kind, cell.metrics) for cell in day.cells] == [
        ("bucket", ("n_today", "max_today")),
        ("count", ("n_today",)),
        ("count", ("max_today",)),
        ("greatest", ("max_today",)),
    ]


def test_what_grows_with_the_window_is_said_to_spill() -> None:
    spilling = {cell.kind for group in by_card().groups for cell in group.cells if cell.spills}
    assert spilling == {"counted values"}


def test_a_predicate_is_computed_once_for_all_windows() -> None:
    column = next(column for column in by_card().hot_columns if column.text == "amount > 0")
    assert column.roles == ("predicate",)
    assert column.used_by == (
        "n_7d",
        "sum_7d",
        "avg_7d",
        "dev_7d",
        "n_before",
        "prev_before",
        "places_before",
    )


def test_only_what_is_kept_as_text_needs_its_bytes() -> None:
    columns = {(column.kind, column.text): column.used_by for column in by_card().hot_columns}
    assert columns["hash", "merchant"] == ("prev_before", "places_before")
    assert columns["value", "merchant"] == ("prev_before",)


def test_a_group_by_has_one_row_for_all_its_windows() -> None:
    assert [(row.fields, row.metrics) for row in by_card().rows] == [
        (("card",), 7),
        (("card", "merchant"), 2),
    ]


def test_sharing_is_counted() -> None:
    alone = "SELECT count(*) FROM payments GROUP BY card OVER SLIDING 1 HOUR"
    definitions = parse_definitions(_payments(alone))
    [plan] = _explain(definitions, "payments")
    assert (plan.cells, plan.cells_unshared) == (1, 1)
    shared = "SELECT sum(amount), avg(amount) FROM payments GROUP BY card OVER SLIDING 1 HOUR"
    [plan] = _explain(parse_definitions(_payments(shared)), "payments")
    assert (plan.cells, plan.cells_unshared) == (2, 4)


@pytest.mark.parametrize("text", ["amount+1", "(amount + 1)", "amount   +1"])
def test_expressions_of_equal_meaning_are_one(text: str) -> None:
    query = f"SELECT sum({text}) AS a, avg(amount + 1) AS b FROM payments GROUP BY card OVER SLIDING 1 HOUR"
    [plan] = _explain(parse_definitions(_payments(query)), "payments")
    [group] = plan.groups
    assert [cell.metrics for cell in group.cells] == [("a", "b")] * 2


@settings(max_examples=examples(25, 60))
@given(cases(max_steps=1))
def test_the_explanation_agrees_with_the_program(case: Case) -> None:
    definitions = parse_definitions(case.definitions)
    for name, stream in definitions.streams.items():
        for plan in _explain(definitions, name):
            metrics = [m.resolved for m in definitions.metrics_of(name) if m.home == plan.partitioner]
            assert plan.metrics == len(metrics)
            if not metrics:
                continue
            shared = build_plan(metrics)
            groups = {fields: n for n, fields in enumerate(dict.fromkeys(m.group_by for m in metrics))}
            edges = {delta_ms: n for n, delta_ms in enumerate(shared.edges_ms)}
            builder = ProgramBuilder(stream.types, edges, groups)
            _agrees(plan, builder.build([Generation(0, tuple(metrics))]))


def _agrees(plan: PartitionerPlan, program: Program) -> None:
    assert len(plan.groups) == len(program.nodes)
    assert [column.name for column in plan.hot_columns] == [column.name for column in program.hot.columns]
    for row, layout in zip(plan.rows, program.groups, strict=True):
        cells = [cell for group in plan.groups if group.fields == row.fields for cell in group.cells]
        assert row.words == layout.words
        nodes = sum(group.fields == row.fields for group in plan.groups)
        assert 0 <= layout.words - sum(cell.words for cell in cells) < LINE_WORDS * nodes
        assert len(cells) == len(layout.cells)
    assert plan.cells <= plan.cells_unshared
    named = [metric.name for group in plan.groups for metric in group.metrics]
    for column in plan.hot_columns:
        assert column.roles
        assert set(column.used_by) <= set(named)
    assert all(cell.metrics for group in plan.groups for cell in group.cells)


def _explain(definitions: Definitions, name: str) -> tuple[PartitionerPlan, ...]:
    stream = definitions.streams[name]
    homes = [
        Home(each, 1, [m.resolved for m in definitions.metrics_of(name) if m.home == each])
        for each in stream.partitioners
    ]
    return explain_stream(stream, homes).partitioners


def _payments(query: str) -> str:
    fields = 'tx_id = "string"\nts = "timestamp"\ncard = "string"\namount = "double"\n'
    head = '[streams.payments]\ntime = "ts"\nid = "tx_id"\npartitioners = ["card"]\n'
    return f"{head}[streams.payments.fields]\n{fields}[[metrics]]\nsql = '{query}'\n"


def test_computed_fields_are_listed() -> None:
    """What reads one names it; its expression is written out in the plan, and shared with those that say it."""
    text = _payments(
        "SELECT sum(cents) AS total, min(amount * 100) AS least FROM payments GROUP BY card, bin OVER INFINITE"
    )
    text = text.replace(
        'amount = "double"\n',
        'amount = "double"\ncents = { as = "amount * 100" }\nbin = { as = "SUBSTR(card, 1, 6)" }\n',
    )
    explanation = explained(text + "[[metrics]]\nsql = 'DERIVE cents / total AS share FROM payments'\n")
    (stream,) = json.loads(render_json(explanation))["streams"]
    assert stream["computed"] == [
        {"name": "cents", "expression": "amount * 100", "type": "double"},
        {"name": "bin", "expression": "SUBSTR(card, 1, 6)", "type": "string"},
    ]
    assert stream["derived"][0]["fields"] == ["cents"]
    (partitioner,) = stream["partitioners"]
    values = [each for each in partitioner["hot_columns"] if each["kind"] == "value"]
    assert [sorted(each["used_by"]) for each in values] == [["least", "total"]]
    tree = render_tree(explanation)
    assert tree.startswith(
        "stream payments\n├─ computed fields, written out wherever they are read\n"
        "│  ├─ cents = amount * 100       double\n"
    )
    assert "GROUP BY bin, card" in tree
    assert "bin = SUBSTR(card, 1, 6)" in render_svg(explanation)
    assert "GROUP BY bin, card" in render_dot(explanation)
