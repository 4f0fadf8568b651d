"""A condition is one in a program, whether WHERE or FILTER says it: they share a node, its cells and columns."""

import numpy as np
import pytest

from railgun.catalog.definitions import parse_definitions
from railgun.language import ast, resolve
from railgun.plan.program import Generation, Program, ProgramBuilder

_STREAM = """
[streams.s]
time = "ts"
partitioners = ["card"]
[streams.s.fields]
ts = "timestamp"
card = "string"
x = "long"
ok = "boolean"
"""
_ITEMS = ("sum(x)", "avg(x)", "count(*)", "max(x + 1)")
# (WHERE of the items that have no FILTER, WHERE of those that have one, FILTER)
_SPELLINGS = [
    (" WHERE x > 1", "", "x > 1"),
    (" WHERE x > 1", "", "(x  >  1)"),
    (" WHERE x > 1 AND ok", " WHERE x > 1", "ok"),
    (" WHERE (x > 1 OR ok) AND x < 9", " WHERE x > 1 OR ok", "x < 9"),
    (" WHERE x > 1 AND HOUR(ts IN 'Europe/Lisbon') < 6", " WHERE x > 1", "HOUR(ts IN 'Europe/Lisbon') < 6"),
]


def _program(*queries: str) -> Program:
    text = "".join(f'[[metrics]]\nsql = """{sql} GROUP BY card OVER SLIDING 1 HOUR"""\n' for sql in queries)
    definitions = parse_definitions(_STREAM + text)
    metrics = tuple(metric.resolved for metric in definitions.metrics)
    builder = ProgramBuilder(definitions.streams["s"].types, {3_600_000: 0}, {("card",): 0})
    return builder.build([Generation(0, metrics)])


def _faults(where: str, other_where: str, condition: str) -> list[str]:
    """What the program with both spellings has otherwise than the one in which WHERE alone is written."""
    first, last = _ITEMS[:2], _ITEMS[2:]
    named = [f"{item} AS a{place}" for place, item in enumerate(first)]
    plain = [f"{item} AS b{place}" for place, item in enumerate(last)]
    filtered = [f"{item} FILTER (WHERE {condition}) AS b{place}" for place, item in enumerate(last)]
    one = f"SELECT {', '.join(named)} FROM s{where}"
    wanted = _program(one, f"SELECT {', '.join(plain)} FROM s{where}")
    found = _program(one, f"SELECT {', '.join(filtered)} FROM s{other_where}")
    same = {
        "nodes": np.array_equal(found.nodes, wanted.nodes) and len(found.nodes) == 1,
        "updates": np.array_equal(found.updates, wanted.updates),
        "results": np.array_equal(found.results, wanted.results),
        "cells": [each.cells for each in found.groups] == [each.cells for each in wanted.groups],
        "columns": found.hot.columns == wanted.hot.columns,
    }
    return [what for what, is_same in same.items() if not is_same]


@pytest.mark.parametrize(("where", "other_where", "condition"), _SPELLINGS)
def test_both_spellings_share_all(where: str, other_where: str, condition: str) -> None:
    assert _faults(where, other_where, condition) == []


@pytest.mark.parametrize(("where", "other_where", "condition"), _SPELLINGS)
def test_equal_metrics_have_one_text(where: str, other_where: str, condition: str) -> None:
    over = "FROM s{} GROUP BY card OVER SLIDING 1 HOUR"
    queries = [
        f"SELECT sum(x) AS a {over.format(where)}",
        f"SELECT sum(x) FILTER (WHERE {condition}) AS b {over.format(other_where)}",
    ]
    text = _STREAM + "".join(f'[[metrics]]\nsql = """{sql}"""\n' for sql in queries)
    first, second = (metric.resolved for metric in parse_definitions(text).metrics)
    assert first.canonical == second.canonical


def _kept_apart(patch: pytest.MonkeyPatch) -> None:
    """The condition of FILTER is an expression of its own, of equal value."""
    original = resolve._Resolver._of_item

    def of_item(
        self: resolve._Resolver, item: ast.SelectItem, shared: object, group_by: tuple[str, ...]
    ) -> object:
        if item.condition is None:
            return shared
        original(self, item, shared, group_by)  # type: ignore[arg-type]
        both = ast.all_of(ast.all_of(self.query.where, item.condition), ast.BooleanLiteral(True))
        return self._condition(both, self._predicate(both), group_by)

    patch.setattr(resolve._Resolver, "_of_item", of_item)


@pytest.mark.parametrize(("where", "other_where", "condition"), _SPELLINGS)
def test_spellings_that_are_kept_apart_are_caught(
    where: str, other_where: str, condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _kept_apart(monkeypatch)
    assert {"nodes", "cells", "columns"} <= set(_faults(where, other_where, condition))
