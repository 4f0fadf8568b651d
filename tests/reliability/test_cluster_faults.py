"""A cluster on a real broker: zombies, poison in logs, copies of events, metrics that come and go."""

import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from railgun.messaging.transport import TopicPartition
from railgun.registry import evolution
from railgun.wire.encode import encode_event
from tests.broker.own_topics import own_prefix
from tests.halting import halt
from tests.oracle.compare import differences, same_value
from tests.oracle.stream import Oracle
from tests.reliability.poison import poisons
from tests.reliability.small_disk import SmallDisk
from tests.unit.cluster_player import ClusterPlayer
from tests.unit.fixed_plan import write_plan
from tests.unit.local_units import SMALL, awaited, local_units
from tests.unit.processes import DEFINITIONS, event, unit_process, write_config

HORIZON = 50
_COPIES = f"""
[streams.s]
time = "ts"
id = "id"
partitioners = ["card"]
dedup_events = {HORIZON}
[streams.s.fields]
id = "long"
ts = "timestamp"
card = "string"
x = "double"
[[metrics]]
sql = "SELECT count(*) AS n, sum(x) AS total FROM s GROUP BY card OVER SLIDING 2 SECONDS"
"""


@pytest.fixture
def player(kafka: str) -> Iterator[ClusterPlayer]:
    """A cluster of its own on the broker that all tests share."""
    opened = ClusterPlayer(kafka, own_prefix("r"))
    try:
        yield opened
    finally:
        opened.close()


def prefix_of(player: ClusterPlayer) -> str:
    return player.registry.topics.positions.rpartition(".")[0]


def check(player: ClusterPlayer, definitions: str, events: list[dict[str, Any]]) -> None:
    """Every reply to the events so far is the oracle's."""
    model, got = Oracle(definitions).streams["s"], player.replies()
    assert len(got) == len(events)
    for number, (sent, reply) in enumerate(zip(events, got)):
        found = differences(model.score(sent), reply)
        assert not found, f"event {number}: {found}"


def with_zombies(player: ClusterPlayer, broker: str, folder: Path, times: int, seed: int) -> None:
    """A node stands still for a while, another one does its work, then both go on: nobody notices in the replies."""
    chance, events = random.Random(seed), list[dict[str, Any]]()

    def send(count: int) -> None:
        for _ in range(count):
            events.append(event(len(events)))
            player.score(events[-1])
        player.flush()

    player.apply(DEFINITIONS)
    with ExitStack() as stack:
        nodes, places = [], []
        for name in ("a", "b"):
            (folder / name).mkdir()
            config = write_config(folder / name, broker, prefix_of(player), f'node_name = "{name}"')
            places.append((config, folder / name / "data"))
        write_plan(places)
        for config, data in places:
            nodes.append(stack.enter_context(unit_process(data, config, is_planned=False)))
            send(20)
            player.front_end.await_all()
        # Whether a halt meets a unit between an answer and what it says of it is chance.
        for turn in range(10 * times):
            if turn >= times and player.front_end.repeats:
                break
            zombie = nodes[turn % 2]
            send(chance.randrange(60))
            halt(zombie.pid)
            try:
                send(20 + chance.randrange(60))
                player.front_end.await_all()
            finally:
                zombie.send_signal(signal.SIGCONT)
            send(chance.randrange(60))
            player.front_end.await_all()
        check(player, DEFINITIONS, events)
        before = player.front_end.repeats
        player.await_processed()
        awaited(lambda: _collected(player) >= before)
    # The collector compares: what comes again is what came first.
    assert player.front_end.repeats > 0


def _collected(player: ClusterPlayer) -> int:
    player.front_end.collect()
    return player.front_end.repeats


@pytest.mark.timeout(400)
def test_a_zombies_replies_are_the_same(kafka: str, player: ClusterPlayer, tmp_path: Path) -> None:
    with_zombies(player, kafka, tmp_path, 3, seed=1)


@pytest.mark.torture
def test_many_zombies(kafka: str, player: ClusterPlayer, tmp_path: Path) -> None:
    with_zombies(player, kafka, tmp_path, 50, seed=2)


def with_poison(player: ClusterPlayer, broker: str, folder: Path, count: int, seed: int) -> None:
    """Records that nobody can read between the good ones, in every task's log."""
    chance, events, buried = random.Random(seed), list[dict[str, Any]](), 0
    player.apply(DEFINITIONS)
    topics = player.registry.topics
    entry = player.registry.snapshot().catalog.streams["s"]
    values = [event(0)[field.name] for field in entry.stream.fields]
    good = encode_event(entry.schema.version, "0", values[1], values)
    made = [record for _, record in poisons(entry.schema.version, good, len(values))]
    with local_units(broker, prefix_of(player), folder, 2, SMALL):
        while buried < count:
            for _ in range(chance.randrange(1, 30)):
                events.append(event(len(events)))
                player.score(events[-1])
            player.flush()
            where = TopicPartition(topics.tasks("s", chance.choice(("card", "shop"))), chance.randrange(2))
            chosen = chance.sample(made, chance.randrange(1, 5))
            player.transport.append(*where, chosen)
            buried += len(chosen)
        check(player, DEFINITIONS, events)
        player.await_processed()
        player.positions.read()
        assert {heard.status.state for heard in player.positions.newest.values()} == {"answering"}
    player.positions.read()
    assert sum(heard.status.unreadable for heard in player.positions.newest.values()) == buried
    assert {heard.status.state for heard in player.positions.newest.values()} == {"closed"}
    awaited(lambda: player.transport.end_offset(topics.dead("s"), 0) == buried)


@pytest.mark.timeout(400)
def test_poison_in_the_logs(kafka: str, player: ClusterPlayer, tmp_path: Path) -> None:
    with_poison(player, kafka, tmp_path, 60, seed=1)


@pytest.mark.torture
def test_ten_thousand_poisons_in_the_logs(kafka: str, player: ClusterPlayer, tmp_path: Path) -> None:
    with_poison(player, kafka, tmp_path, 10_000, seed=2)


def with_copies(player: ClusterPlayer, broker: str, folder: Path, count: int, seed: int) -> None:
    """Each event 1 to 5 times: at once, and just inside, at and beyond the horizon of what is remembered."""
    chance, number = random.Random(seed), 0
    # Copies by how many events are to be accepted before them.
    due: dict[int, list[dict[str, Any]]] = {}
    sent: list[dict[str, Any]] = []
    while len(sent) < count:
        made = {
            "id": number,
            "ts": 1_700_000_000_000 + 10 * number,
            "card": f"c{number % 5}",
            "x": number / 8,
        }
        number += 1
        sent.append(made)
        for _ in range(chance.randrange(5)):
            due.setdefault(number + chance.choice((0, HORIZON - 1, HORIZON, HORIZON + 1)), []).append(made)
        sent += due.pop(number, [])
    player.apply(_COPIES)
    with local_units(broker, prefix_of(player), folder, 1, SMALL):
        for one in sent:
            player.score(one)
        player.flush()
        check(player, _COPIES, sent)
    again = sum("duplicate" in reply for reply in player.replies())
    assert 0 < again < len(sent) - number


@pytest.mark.timeout(400)
def test_copies_around_the_horizon(kafka: str, player: ClusterPlayer, tmp_path: Path) -> None:
    with_copies(player, kafka, tmp_path, 1_500, seed=1)


@pytest.mark.torture
def test_many_copies_around_the_horizon(kafka: str, player: ClusterPlayer, tmp_path: Path) -> None:
    with_copies(player, kafka, tmp_path, 30_000, seed=2)


def added(number: int) -> str:
    """A metric that comes and goes."""
    return (
        f"SELECT sum(x) AS m{number} FROM s WHERE x > {number % 7} GROUP BY card OVER SLIDING "
        f"{1 + number % 40} SECONDS"
    )


def with_changes(player: ClusterPlayer, broker: str, folder: Path, times: int, seed: int) -> None:
    """Metrics come and go while events do: what a reply says of one is what it would say, had it always been there."""
    chance, events = random.Random(seed), list[dict[str, Any]]()
    player.apply(DEFINITIONS)
    registry, living = player.registry, list[str]()
    with local_units(broker, prefix_of(player), folder, 2, SMALL):
        for number in range(times):
            for _ in range(chance.randrange(1, 30)):
                events.append(event(len(events)))
                player.score(events[-1])
            player.flush()
            registry.change(lambda catalog, number=number: evolution.new_metrics(catalog, "s", added(number)))
            living.append(f"m{number}")
            if len(living) > 5:
                gone = living.pop(chance.randrange(len(living)))
                registry.change(lambda catalog, gone=gone: [evolution.dropped_metric(catalog, "s", gone)])
        player.front_end.await_all()
        awaited(lambda: _asked_until_warm(player, events, living))
        got = player.replies()
    everything = DEFINITIONS + "".join(f'[[metrics]]\nsql = "{added(number)}"\n' for number in range(times))
    model, said = Oracle(everything).streams["s"], set[str]()
    for number, (one, reply) in enumerate(zip(events, got, strict=True)):
        expected = model.score(one)
        told = {name for name in reply["metrics"] if name not in reply.get("warming", ())}
        assert {"n", "total", "usual", "of_shop", "newest", "most", "odd", "above", "both", "mean"} <= told
        for name in told:
            assert same_value(expected["metrics"][name], reply["metrics"][name]), f"event {number}: {name}"
        said |= told
    assert set(living) <= said


def _asked_until_warm(player: ClusterPlayer, events: list[dict[str, Any]], living: list[str]) -> bool:
    events.append(event(len(events)))
    player.score(events[-1])
    reply = player.replies()[-1]
    return set(living) <= set(reply["metrics"]) and not reply.get("warming")


@pytest.mark.timeout(400)
def test_metrics_come_and_go_during_traffic(kafka: str, player: ClusterPlayer, tmp_path: Path) -> None:
    with_changes(player, kafka, tmp_path, 15, seed=1)


@pytest.mark.torture
def test_a_thousand_metrics_come_and_go_during_traffic(
    kafka: str, player: ClusterPlayer, tmp_path: Path
) -> None:
    with_changes(player, kafka, tmp_path, 1_000, seed=2)


@pytest.mark.timeout(400)
def test_a_unit_whose_disk_is_full(kafka: str, player: ClusterPlayer, tmp_path: Path) -> None:
    """It ends and says why; with space again the next one answers everything, from the log."""
    config = write_config(tmp_path, kafka, prefix_of(player))
    events: list[dict[str, Any]] = []

    def send(count: int) -> None:
        for _ in range(count):
            events.append(event(len(events)))
            player.score(events[-1])
        player.flush()

    player.apply(DEFINITIONS)
    with SmallDisk.mounted(tmp_path / "disk", 48 << 20) as disk:
        with unit_process(disk.folder / "data", config, before=disk.inside) as unit:
            send(100)
            player.front_end.await_all()
            disk.fill(0)
            # It checkpoints all the time.
            send(1_000)
            assert unit.wait(120) == 1
            assert unit.stderr is not None
            said = unit.stderr.read().decode()
        assert "No space left on device" in said
        assert "Traceback" not in said
        disk.clear()
        with unit_process(disk.folder / "data", config, before=disk.inside):
            send(100)
            check(player, DEFINITIONS, events)
