"""A process killed at any moment of a deepening: what it had answered stays, and once deepened is deepened."""

import random
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from railgun.engine.engine import Engine
from tests.engine.deepening.deepened import build_deepening
from tests.engine.deepening.deepening_process import SETTINGS
from tests.engine.scoring_process import DEFINITIONS, event
from tests.reliability.nursery import Nursery

HISTORY, OWN = 300, 500
_SUMS = [Fraction(0)]


def exact_sum(last: int) -> Fraction:
    """Of the values of all events up to one."""
    while len(_SUMS) <= last + HISTORY + 1:
        _SUMS.append(_SUMS[-1] + Fraction(event(len(_SUMS) - 1 - HISTORY)["x"]))
    return _SUMS[last + HISTORY + 1]


def is_deepened(line: str) -> bool:
    """Whether an answer counts the history; it must be right either way."""
    number, n, total = line.split()
    i = int(number)
    deepened = int(n) == i + 1 + HISTORY
    first = -HISTORY if deepened else 0
    assert (int(n), float(total)) == (i + 1 - first, float(exact_sum(i) - exact_sum(first - 1)))
    return deepened


def deepened_under_kills(folder: Path, seed: int) -> None:
    chance, following, answers = random.Random(seed), OWN, []
    with Engine(folder, durability="os", settings=SETTINGS) as engine:
        engine.apply(DEFINITIONS)
        engine.score_many("s", [event(number) for number in range(OWN)])
        plan = engine.begin_deepening("s")
    history = pa.Table.from_pylist([event(number) for number in range(-HISTORY, 0)])
    build_deepening(folder / "backfill" / "s" / "tasks", plan, history, SETTINGS)
    with Nursery("tests.engine.deepening.deepening_process") as nursery:
        for life in range(200):
            # Ever longer, so that a slow machine comes to the end too.
            said = nursery.killed(
                folder, following, chance.randrange(1, 80), chance.random() * min(0.6, 0.03 * life)
            )
            answers += [is_deepened(line) for line in said]
            following += len(said)
            if answers[-1] and chance.random() < 0.2:
                break
    assert answers == sorted(answers)
    assert answers[-1]
    with Engine(folder, durability="os", settings=SETTINGS) as engine:
        assert engine.deepening("s") is None
        reply = engine.score("s", event(following))
        assert is_deepened(f"{following} {reply['metrics']['n']} {reply['metrics']['total']!r}")
    assert not (folder / "backfill" / "s").exists()
    assert all((place / "moved_to").is_file() for place in (folder / "streams" / "s").glob("*/*"))


def test_killed_a_few_times(tmp_path: Path) -> None:
    deepened_under_kills(tmp_path, seed=1)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(2, 22))
def test_killed_many_times(tmp_path: Path, seed: int) -> None:
    deepened_under_kills(tmp_path, seed)
