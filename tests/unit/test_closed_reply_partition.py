"""A front-end whose partition of replies has no leader for a while: the others get their answers meanwhile, and all
tasks go on after ten seconds.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from railgun.cluster.silence import REPLIES_STUCK_S
from railgun.messaging.transport import Entry, TopicPartition
from railgun.unit import sending
from railgun.wire.partition import partition_key, partition_of
from tests.broker.own_topics import own_prefix
from tests.counts import seeds
from tests.strategies.case import STREAM
from tests.unit.cluster_player import ClusterPlayer
from tests.unit.front_end import FrontEnd
from tests.unit.local_units import SMALL, LocalUnit, awaited
from tests.unit.processes import DEFINITIONS

# Replies of less than a second of the test, as 16 MiB are of a cluster under load.
_ROOM_BYTES = 20_000
_ANSWERED_S = 5.0


class ClosedPartitions:
    """Stands before a unit's transport: what is sent to a closed partition waits, and is sent once that is open."""

    def __init__(self, unit: LocalUnit, monkeypatch: pytest.MonkeyPatch) -> None:
        self._submit = unit.transport.submit
        self.closed: set[TopicPartition] = set()
        self._waiting: list[tuple[Sequence[Entry], Future[list[int]]]] = []
        monkeypatch.setattr(unit.transport, "submit", self._send)

    def _send(self, entries: Sequence[Entry]) -> Future[list[int]]:
        if not any(entry.where in self.closed for entry in entries):
            return self._submit(entries)
        self._waiting.append((entries, Future()))
        return self._waiting[-1][1]

    def open(self) -> None:
        self.closed.clear()
        for entries, future in self._waiting:
            future.set_result(self._submit(entries).result())


@pytest.fixture
def prefix() -> str:
    return own_prefix("r")


@pytest.fixture
def player(kafka: str, prefix: str) -> Iterator[ClusterPlayer]:
    opened = ClusterPlayer(kafka, prefix)
    try:
        opened.apply(DEFINITIONS)
        yield opened
    finally:
        opened.close()


@pytest.fixture
def unit(kafka: str, prefix: str, player: ClusterPlayer, tmp_path: Path) -> Iterator[LocalUnit]:
    opened = LocalUnit(kafka, prefix, tmp_path / "data", 0, 1, SMALL)
    try:
        awaited(lambda: opened.error is not None or opened.loop.is_ready)
        yield opened
    finally:
        opened.stop()


def _of_partition(name: str, values: Sequence[Any], partition: int) -> Any:
    """A value whose task is the one of a partition."""
    return next(each for each in values if partition_of(partition_key(each), 2) == partition)


class Client:
    """Sends events of the tasks of one partition."""

    def __init__(self, player: ClusterPlayer, front_end: FrontEnd, partition: int) -> None:
        self._player, self.front_end = player, front_end
        self._card = _of_partition("card", [f"c{number}" for number in range(20)], partition)
        self._shop = _of_partition("shop", range(20), partition)
        self._sent = 0

    def send(self, count: int) -> None:
        entry = self._player.registry.snapshot().catalog.streams[STREAM]
        events = [
            {
                "id": self.front_end.number * 1_000_000 + self._sent + number,
                "ts": 1_700_000_000_000 + self._sent + number,
                "card": self._card,
                "shop": self._shop,
                "x": 1.0,
            }
            for number in range(count)
        ]
        self._sent += count
        self.front_end.send(entry, events)

    def answered_within_s(self) -> float:
        """Send an event, and return after how long it was answered."""
        began_s = time.monotonic()
        self.send(1)
        self.front_end.await_all(60.0)
        return time.monotonic() - began_s


def _play(player: ClusterPlayer, unit: LocalUnit, monkeypatch: pytest.MonkeyPatch, away_s: float) -> None:
    """away_s: for how long the partition has no leader."""
    monkeypatch.setattr(sending, "_ROOM_BYTES", _ROOM_BYTES)
    partitions = ClosedPartitions(unit, monkeypatch)
    other = FrontEnd(player.transport, player.registry.topics, 2)
    well, away = Client(player, player.front_end, 0), Client(player, other, 1)
    for client in (well, away):
        client.send(10)
        client.front_end.await_all(60.0)
    partitions.closed.add(other.where)
    began_s = time.monotonic()
    away.send(2_000)
    awaited(lambda: not unit.sending.has_room, 60.0)
    # Tasks of the other front-end go on at once, and reports too.
    assert well.answered_within_s() < _ANSWERED_S
    while time.monotonic() < began_s + REPLIES_STUCK_S - 5.0:
        assert well.answered_within_s() < _ANSWERED_S
        time.sleep(0.1)
    assert unit.error is None
    held = [host for host in unit.loop.hosts.values() if host.position > host.replied()]
    assert len(held) == 2, "the tasks of the front-end that is away wait for it"
    # All tasks go on then, and their checkpoints too.
    awaited(lambda: all(host.replied() == host.position for host in held), 60.0)
    away.send(10)
    awaited(lambda: all(host.lag == 0 and host.replied() == host.position for host in held), 60.0)
    awaited(lambda: all(host.task.checkpoints.durable_position == host.position for host in held), 60.0)
    while time.monotonic() < began_s + away_s:
        away.send(1)
        assert well.answered_within_s() < _ANSWERED_S
        time.sleep(0.1)
    partitions.open()
    awaited(lambda: _is_answered(away), 60.0)
    assert unit.error is None


def _is_answered(client: Client) -> bool:
    """Whether an event that is sent now is answered, within a second."""
    client.send(1)
    sequence = len(client.front_end.sent) - 1
    until_s = time.monotonic() + 1.0
    while time.monotonic() < until_s:
        client.front_end.collect()
        if not any(missing == sequence for missing, _ in client.front_end.missing()):
            return True
    return False


@pytest.mark.parametrize("count", seeds(range(1), range(5)))
def test_other_front_ends_get_their_answers(
    player: ClusterPlayer, unit: LocalUnit, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    _play(player, unit, monkeypatch, 14.0 if count == 0 else 60.0)
