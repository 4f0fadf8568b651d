"""A program that grew metric by metric is the one that would be built at once."""

import random
from dataclasses import fields, replace

import numpy as np
import pytest

from railgun.catalog.definitions import parse_definitions
from railgun.plan.program import TIME_MAX, Generation, Program, ProgramBuilder

_STREAM = """
[streams.payments]
time = "ts"
id = "tx_id"
partitioners = ["card"]
[streams.payments.fields]
tx_id = "string"
ts = "timestamp"
card = "string"
merchant = "string"
amount = "double"
fee = "double"
items = "long"
"""
_SELECTED = [
    "count(*)",
    "sum(amount)",
    "avg(fee)",
    "max(amount + fee)",
    "count_distinct(merchant)",
    "last(merchant)",
    "stddev(items)",
]
_WHERE = ["", " WHERE amount > 10", " WHERE merchant = 'm' AND items > 2"]
_GROUPS = ["card", "card, merchant"]
_OVER = ["SLIDING {} MINUTES", "TUMBLING {} MINUTES", "INFINITE", "SLIDING 1 MINUTE DELAYED BY {} SECONDS"]


def test_it_equals_one_that_is_built_anew_after_every_change() -> None:
    grew = 0
    for seed in range(30):
        grew += _one_life(random.Random(seed))
    assert grew > 300


def test_one_that_could_not_be_built_leaves_nothing_behind() -> None:
    queries = "".join(
        f'[[metrics]]\nsql = "SELECT sum(amount) AS m{n} FROM payments GROUP BY card OVER SLIDING {n + 1} MINUTES"\n'
        for n in range(3)
    )
    definitions = parse_definitions(_STREAM + queries)
    types, edges = definitions.streams["payments"].types, {60_000: 0, 180_000: 2}
    generations = [Generation(n, (metric.resolved,)) for n, metric in enumerate(definitions.metrics)]
    builder = ProgramBuilder(types, edges, {("card",): 0})
    builder.build(generations[:1])
    with pytest.raises(KeyError):
        builder.build(generations)
    edges[120_000] = 1
    _assert_equal(builder.build(generations), ProgramBuilder(types, edges, {("card",): 0}).build(generations))


def _one_life(random_: random.Random) -> int:
    queries = "".join(
        f'[[metrics]]\nsql = """SELECT {random_.choice(_SELECTED)} AS m{n} FROM payments'
        f"{random_.choice(_WHERE)} GROUP BY {random_.choice(_GROUPS)}"
        f' OVER {random_.choice(_OVER).format(random_.randint(1, 5))}"""\n'
        for n in range(40)
    )
    definitions = parse_definitions(_STREAM + queries)
    types = definitions.streams["payments"].types
    edges: dict[int, int] = {}
    groups: dict[tuple[str, ...], int] = {}
    builder = ProgramBuilder(types, edges, groups)
    generations: list[Generation] = []
    grew = 0
    for number, metric in enumerate(definitions.metrics):
        happens = random_.random()
        if happens < 0.1 and generations:
            del generations[random_.randrange(len(generations))]
        elif happens < 0.2 and generations:
            last = generations.pop()
            generations.append(replace(last, metrics=(*last.metrics, metric.resolved)))
        else:
            grew += bool(generations)
            generations.append(Generation(number, (metric.resolved,), after_ms=number))
        generations = [replace(each, **_filled(random_)) for each in generations]
        _renumber(random_, generations, edges, groups)
        before = builder.build(generations)
        _assert_equal(before, ProgramBuilder(types, edges, groups).build(generations))
        # What a task does to its program is not for the next one.
        before.nodes[:] = 7
        for layout in before.groups:
            layout.place("retired", 3)
    return grew


def _filled(random_: random.Random) -> dict[str, int]:
    return {
        "filled_ms": random_.choice([TIME_MAX, random_.randrange(10**6)]),
        "filled_seq": random_.randrange(10**6),
    }


def _renumber(
    random_: random.Random,
    generations: list[Generation],
    edges: dict[int, int],
    groups: dict[tuple[str, ...], int],
) -> None:
    """Edges and groups as a runtime numbers them: those that nobody needs go, their numbers may come again."""
    wanted_edges: set[int] = set()
    wanted_groups: set[tuple[str, ...]] = set()
    for metric in (metric for each in generations for metric in each.metrics):
        wanted_groups.add(metric.group_by)
        wanted_edges |= {metric.window.delay_ms, metric.window.delay_ms + (metric.window.size_ms or 0)} - {0}
    for held, wanted in ((edges, wanted_edges), (groups, wanted_groups)):
        for key in set(held) - wanted:  # type: ignore[operator]
            del held[key]  # type: ignore[arg-type]
        for key in sorted(wanted - set(held)):  # type: ignore[operator]
            free = [number for number in range(200) if number not in held.values()]
            held[key] = random_.choice(free[:3])  # type: ignore[index]


def _assert_equal(found: Program, wanted: Program) -> None:
    for field in fields(Program):
        one, other = getattr(found, field.name), getattr(wanted, field.name)
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other, err_msg=field.name)
            assert one.dtype == np.int64
        else:
            assert one == other, field.name
