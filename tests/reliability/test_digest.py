"""Copies of a task agree on their content at the end of the log, however they came there."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from railgun.aggregators.codes import COUNT
from railgun.task.retirement import cell_kinds
from railgun.task.settings import TaskSettings
from railgun.wire.records import Records
from reservoir.native.jit import array_at
from tests.counts import seeds
from tests.reliability.campaign import played
from tests.reliability.volume import ordered
from tests.strategies.case import Case, replies
from tests.strategies.generate import Profile
from tests.strategies.seeded import case
from tests.task.player import TINY, LogWriter, TaskPlayer

CHANGING = Profile(spread=False, explicit_warm=True, control_percent=8, queries_max=6)
SWEEPING = replace(TINY, sweep_interval_s=0.0)


def filled_digest(player: TaskPlayer) -> str:
    while player.task.fills.waiting:
        player.task.work()
    return player.task.digest()


def fed(
    drawn: Case, folder: Path, settings: TaskSettings, seed: int, longest: int, crash_percent: int
) -> str:
    """The digest of a task that is fed the finished log in pieces, crashing in between."""
    writer, rng = LogWriter(drawn), random.Random(seed)
    replies(drawn)
    for index, step in enumerate(drawn.steps):
        writer.write(index, step)
    player = TaskPlayer(folder, writer, settings)
    records = [record for _, record in writer.records]
    try:
        while player.task.position < len(records):
            first = player.task.position
            player.task.process(
                Records.of(records[first : first + rng.randint(1, longest)]), first, player._deliver
            )
            player.task.work()
            if rng.randrange(100) < crash_percent:
                player.crash()
        return filled_digest(player)
    finally:
        player.task.close()


SEEDS = seeds(range(3), range(208))


@pytest.mark.parametrize("seed", SEEDS)
def test_copies_agree(seed: int, tmp_path: Path) -> None:
    drawn = case(seed + 500, 150, CHANGING)
    digests = {
        "one by one": fed(drawn, tmp_path / "1", TaskSettings(), seed, 1, 0),
        "at once": fed(drawn, tmp_path / "2", TaskSettings(), seed, 1_000, 0),
        "crashing": fed(drawn, tmp_path / "3", TINY, seed, 9, 30),
        "sweeping": fed(drawn, tmp_path / "4", SWEEPING, seed, 30, 10),
    }
    assert len(set(digests.values())) == 1, f"seed {seed}: {digests}"


def test_a_digest_sees_one_event_and_one_word(tmp_path: Path) -> None:
    whole = ordered(1, 60, keys=3).case()
    shorter = replace(whole, steps=whole.steps[:-1], cuts=(), restarts=frozenset())
    with played(shorter, tmp_path / "b", TaskSettings(), crash=False) as player:
        without_last = player.task.digest()
    with played(whole, tmp_path / "a", TaskSettings(), crash=False) as player:
        task = player.task
        before = task.digest()
        assert before != without_last
        ((group, offset), _), *_ = [
            (place, kind) for place, kind in cell_kinds(task.runtime.program).items() if kind.op == COUNT
        ]
        ids, _ = next(task.table.reader.rows(group))
        (row,) = task.table.find(np.array([[group, *ids[0].tolist()]], np.uint64)).tolist()
        array_at(row + offset, 1, np.uint64)[0] += np.uint64(1)
        assert task.digest() != before
