"""Random streams over a real broker and several units: every reply is the oracle's, bit for bit, whatever happens."""

import dataclasses
import re
from pathlib import Path

import pytest

from tests.broker.own_topics import own_prefix
from tests.engine.player import SMALLEST
from tests.oracle.compare import differences
from tests.oracle.steps import perform
from tests.strategies.case import Case, replies
from tests.strategies.generate import Profile
from tests.strategies.seeded import case
from tests.unit.cluster_player import ClusterPlayer
from tests.unit.local_units import SMALL, LocalUnit, awaited, local_units

_PARTITIONERS = re.compile(r"partitioners = (.*)")
_PARTITIONS = re.compile(r"partitions = [0-9]+")


@pytest.fixture
def prefix() -> str:
    """A cluster of its own on the broker that all tests share."""
    return own_prefix("u")


def spread_case(seed: int, size: int) -> Case:
    """A case with two partitioners of 4 partitions each."""
    for number in range(1_000):
        drawn = case(seed * 1_000 + number, size, Profile(control_percent=3))
        partitioners = _PARTITIONERS.search(drawn.definitions)
        if partitioners is not None and partitioners[1].count('"') == 4 and "*" not in partitioners[1]:
            definitions = _PARTITIONS.sub("partitions = 4", drawn.definitions)
            return dataclasses.replace(drawn, definitions=definitions)
    raise AssertionError(seed)


def check(drawn: Case, player: ClusterPlayer) -> None:
    expected = [each for each in replies(drawn) if each is not None]
    got = player.replies()
    assert len(got) == len(expected)
    for place, (wanted, reply) in enumerate(zip(expected, got)):
        found = differences(wanted, reply)
        assert not found, f"event {place}: {found}"


def play(drawn: Case, player: ClusterPlayer) -> None:
    for step in drawn.steps:
        perform(player, step)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2])
def test_every_reply_is_the_oracles(kafka: str, prefix: str, tmp_path: Path, seed: int) -> None:
    drawn = spread_case(seed, 120)
    player = ClusterPlayer(kafka, prefix)
    settings = SMALL if seed % 2 else SMALLEST
    try:
        player.apply(drawn.definitions)
        with local_units(kafka, prefix, tmp_path, 3, settings):
            play(drawn, player)
            check(drawn, player)
    finally:
        player.close()


@pytest.mark.timeout(600)
def test_a_unit_that_starts_late_or_from_old_data_ends_in_the_same_state(
    kafka: str, prefix: str, tmp_path: Path
) -> None:
    drawn = spread_case(3, 150)
    half = len(drawn.steps) // 2
    player = ClusterPlayer(kafka, prefix)
    try:
        player.apply(drawn.definitions)
        with local_units(kafka, prefix, tmp_path / "present", 1, SMALL):
            for step in drawn.steps[:half]:
                perform(player, step)
            player.replies()
            # A copy that saw the first half, and nothing since.
            old = LocalUnit(kafka, prefix, tmp_path / "old", 0, 1, SMALL)
            player.await_processed()
            old.stop()
            for step in drawn.steps[half:]:
                perform(player, step)
            check(drawn, player)
            player.await_processed()
        digests = []
        for folder in ("present", "old", "new"):
            unit = LocalUnit(kafka, prefix, tmp_path / folder, 0, 1, SMALL)
            try:
                awaited(lambda unit=unit: unit.error is not None or unit.loop.is_ready)
                unit.halt()
                assert unit.error is None, unit.error
                assert not [host.failure for host in unit.loop.hosts.values() if host.failure]
                digests.append({str(key): host.task.digest() for key, host in unit.loop.hosts.items()})
            finally:
                unit.stop()
        assert digests[0] == digests[1] == digests[2]
        assert len(digests[0]) >= 8
        # What was replied to before is read in silence.
        player.front_end.collect()
        assert player.front_end.repeats == 0
    finally:
        player.close()


@pytest.mark.timeout(600)
def test_units_that_stop_and_crash_between_batches(kafka: str, prefix: str, tmp_path: Path) -> None:
    drawn = dataclasses.replace(
        spread_case(5, 120), cuts=(20, 45, 60, 90, 110), restarts=frozenset((20, 45, 60, 90))
    )
    player = ClusterPlayer(kafka, prefix)
    units: list[LocalUnit] = []
    try:
        player.apply(drawn.definitions)
        units += [LocalUnit(kafka, prefix, tmp_path, index, 2, SMALL) for index in range(2)]
        for number, batch in enumerate(drawn.batches()):
            if batch.restart:
                player.flush()
                # Every other time as a crash leaves it: what was done since the last checkpoint is done again.
                units.pop(0).stop(checkpoint=number % 2 == 0)
                units.append(LocalUnit(kafka, prefix, tmp_path, (number + 1) % 2, 2, SMALL))
            for step in batch.steps:
                perform(player, step)
        check(drawn, player)
    finally:
        for unit in units:
            unit.stop()
        player.close()


@pytest.mark.timeout(600)
def test_a_node_with_more_or_fewer_units_goes_on(kafka: str, prefix: str, tmp_path: Path) -> None:
    drawn = dataclasses.replace(spread_case(6, 90), cuts=(30, 60), restarts=frozenset())
    player = ClusterPlayer(kafka, prefix)
    try:
        player.apply(drawn.definitions)
        for units, batch in zip((2, 3, 1), drawn.batches()):
            with local_units(kafka, prefix, tmp_path, units, SMALL):
                for step in batch.steps:
                    perform(player, step)
                player.replies()
        check(drawn, player)
        # Nobody began anew: what was answered is not answered again.
        assert player.front_end.repeats == 0
    finally:
        player.close()
