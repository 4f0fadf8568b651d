"""Records that cannot be read are passed over with a reason and change nothing else; times at the ends of time."""

from dataclasses import replace
from pathlib import Path

import pytest

from railgun.task.errors import UnknownSchemaError
from railgun.task.settings import TaskSettings
from railgun.wire.encode import encode_event
from railgun.wire.msgpack import Status
from tests.counts import seeds
from tests.oracle.steps import Score
from tests.reliability.campaign import played
from tests.reliability.disturbed import DisturbedPlayer
from tests.reliability.poison import PoisonedWriter
from tests.strategies.case import Case, replies
from tests.strategies.generate import Profile
from tests.strategies.seeded import case
from tests.task.player import TINY, LogWriter, TaskPlayer, assert_reply

ONE_TASK = Profile(spread=False, explicit_warm=True)
YEAR_9999_MS, FIRST_MS = 253_402_300_799_999, -(2**63) + 1


def poisoned(seed: int, size: int, folder: Path) -> int:
    """Play a case with poisons between its records; how many there were."""
    drawn = case(seed, size, ONE_TASK)
    expected = replies(drawn)
    writer = PoisonedWriter(drawn, seed)
    player = DisturbedPlayer(folder, writer, TINY)
    index = 0
    try:
        for batch in drawn.batches():
            if batch.restart:
                player.crash()
            for step in batch.steps:
                writer.write(index, step)
                index += 1
            player.catch_up()
    finally:
        player.task.close()
    for at, answer in player.answers.items():
        assert_reply(expected[at], answer, writer.partitioner, f"seed {seed} step {at}")
    assert {offset: Status(status) for offset, (status, _) in player.refused.items()} == writer.reasons
    assert all(reason for _, reason in player.refused.values())
    return len(writer.reasons)


def test_poisons_change_nothing_else(tmp_path: Path) -> None:
    found = sum(poisoned(seed, 120, tmp_path / str(seed)) for seed in range(6))
    assert found > 200


@pytest.mark.torture
def test_ten_thousand_poisons(tmp_path: Path) -> None:
    found = seed = 0
    while found < 10_000:
        seed += 1
        found += poisoned(10_000 + seed, 300, tmp_path / str(seed))


def test_an_unknown_schema_stops_the_task(tmp_path: Path) -> None:
    drawn = case(3, 40, ONE_TASK)
    writer = LogWriter(drawn)
    for index, step in enumerate(drawn.steps):
        writer.write(index, step)
    at = len(writer.records) // 2
    writer.records.insert(at, (None, encode_event(999, "x", 0, ())))
    player = TaskPlayer(tmp_path / "t", writer, TINY)
    for _ in range(2):
        with pytest.raises(UnknownSchemaError, match=f"offset {at}"):
            player.catch_up()
        player.crash()
    player.task.close()


def with_far_events(drawn: Case) -> Case:
    """An event at each end of time, in the middle of a case and near its end."""
    steps = list(drawn.steps)
    for n, (at, time_ms) in enumerate(
        [(len(steps) // 3, FIRST_MS), (len(steps) // 2, YEAR_9999_MS), (len(steps) - 5, YEAR_9999_MS + 1)]
    ):
        model = next(step.event for step in steps if isinstance(step, Score))
        number = 10**9 + n
        far = {**model, "ts": time_ms, "id": number if isinstance(model["id"], int) else f"far{n}"}
        steps.insert(at, Score(far))
    return replace(drawn, steps=tuple(steps))


@pytest.mark.parametrize("seed", seeds(range(40, 44), range(40, 50)))
def test_the_ends_of_time(seed: int, tmp_path: Path) -> None:
    drawn = with_far_events(case(seed, 90, ONE_TASK))
    settings = TINY if seed % 2 else TaskSettings()
    with played(drawn, tmp_path / "t", settings, crash=True) as player:
        assert player.answers
