"""What one task or the broker does to a unit: a task with an error of its own stops alone, the others go on."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaTopicPartition

from railgun.broker.local import LocalBroker
from railgun.host.place import TaskKey
from railgun.messaging.errors import TransportRefusedError
from railgun.messaging.kafka import topics as kafka_topics
from railgun.messaging.transport import Entry, TopicPartition
from railgun.registry import evolution
from railgun.registry.kafka_registry import KafkaRegistry
from railgun.unit import log_faults
from railgun.unit import loop as unit_loop
from railgun.wire.encode import encode_event
from railgun.wire.partition import partition_key, partition_of
from railgun.wire.records import Records
from tests.broker.own_topics import own_prefix
from tests.broker.quick_broker import started_again, unheard
from tests.halting import halt
from tests.oracle.compare import differences
from tests.oracle.stream import Oracle
from tests.strategies.case import STREAM
from tests.unit.cluster_player import ClusterPlayer
from tests.unit.local_units import SMALL, LocalUnit, awaited, quick_settings
from tests.unit.processes import DEFINITIONS, event

_BACKLOG = 80_000


@pytest.fixture
def prefix() -> str:
    """A cluster of its own on the broker that all tests share."""
    return own_prefix("f")


@pytest.fixture
def player(kafka: str, prefix: str) -> Iterator[ClusterPlayer]:
    """With a stream of four tasks."""
    opened = ClusterPlayer(kafka, prefix)
    try:
        opened.apply(DEFINITIONS)
        yield opened
    finally:
        opened.close()


@pytest.fixture
def unit(kafka: str, prefix: str, player: ClusterPlayer, tmp_path: Path) -> Iterator[LocalUnit]:
    """The only unit, all its tasks running."""
    opened = LocalUnit(kafka, prefix, tmp_path / "data", 0, 1, SMALL)
    try:
        awaited(lambda: opened.error is not None or opened.loop.is_ready)
        yield opened
    finally:
        opened.stop()


def where_of(player: ClusterPlayer, partitioner: str, partition: int) -> TopicPartition:
    return TopicPartition(player.registry.topics.tasks(STREAM, partitioner), partition)


def send(player: ClusterPlayer, first: int, count: int) -> None:
    for number in range(first, first + count):
        player.score(event(number))
    player.flush()


def check(player: ClusterPlayer) -> None:
    model = Oracle(DEFINITIONS).streams[STREAM]
    for number, reply in enumerate(player.replies()):
        found = differences(model.score(event(number)), reply)
        assert not found, f"event {number}: {found}"


def stopped_tasks(unit: LocalUnit) -> dict[TaskKey, str]:
    return {key: host.failure for key, host in unit.loop.hosts.items() if host.failure}


def dead_letters(player: ClusterPlayer) -> list[tuple[dict[str, bytes], bytes]]:
    """(headers, record) of each, as another client sees them."""

    consumer = Consumer(
        {"bootstrap.servers": player.transport.settings.broker, "group.id": "x", "enable.auto.commit": False}
    )
    found: list[tuple[dict[str, bytes], bytes]] = []
    try:
        topic = player.registry.topics.dead(STREAM)
        consumer.assign([KafkaTopicPartition(topic, 0, 0)])
        end = player.transport.end_offset(topic, 0)
        while len(found) < end:
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                found.append((dict(message.headers() or []), message.value() or b""))
    finally:
        consumer.close()
    return found


def test_records_that_cannot_be_read_are_put_aside(player: ClusterPlayer, unit: LocalUnit) -> None:
    send(player, 0, 30)
    where = where_of(player, "card", 1)
    unknown = b"\x01" + b"\xc1 no record of this version"
    offset = player.transport.append(*where, [unknown])
    send(player, 30, 30)
    check(player)
    player.await_processed()
    # It is put aside by a thread of its own, which makes the topic first.
    dead = player.registry.topics.dead(STREAM)
    awaited(lambda: dead in player.transport.topics() and player.transport.end_offset(dead, 0) == 1)
    [(headers, record)] = dead_letters(player)
    assert record == unknown
    assert headers["reason"]
    assert (headers["topic"], headers["partition"], headers["offset"]) == (
        where.topic.encode(),
        b"1",
        b"%d" % offset,
    )
    assert stopped_tasks(unit) == {}
    player.positions.read()
    assert player.positions.newest[STREAM, "card", 1].status.unreadable == 1


def test_a_schema_that_the_log_never_brought_stops_its_task(player: ClusterPlayer, unit: LocalUnit) -> None:
    send(player, 0, 30)
    player.replies()
    where = where_of(player, "card", 1)
    player.transport.append(*where, [encode_event(99, "e", 1_700_000_000_000, [1])])
    awaited(lambda: bool(stopped_tasks(unit)))
    [(key, failure)] = stopped_tasks(unit).items()
    assert (key.partitioner, key.partition) == ("card", 1)
    assert "UnknownSchemaError" in failure
    send(player, 30, 30)
    awaited(lambda: _only_one_task_is_missing(player))

    def is_said() -> bool:
        player.positions.read()
        return "UnknownSchemaError" in player.positions.newest[STREAM, "card", 1].status.failure

    awaited(is_said)
    assert unit.error is None


def _only_one_task_is_missing(player: ClusterPlayer) -> bool:
    player.front_end.collect()
    return all(partitioner == "card" for _, partitioner in player.front_end.missing())


def test_a_topic_that_is_deleted_under_way_stops_its_tasks(
    player: ClusterPlayer, unit: LocalUnit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_topics, "REFRESH_S", 0.2)
    monkeypatch.setattr(log_faults, "GONE_S", 0.5)
    send(player, 0, 30)
    player.replies()
    player.transport.delete_topic(where_of(player, "card", 0).topic)
    awaited(lambda: len(stopped_tasks(unit)) == 2)
    assert {key.partitioner for key in stopped_tasks(unit)} == {"card"}
    assert all("no such topic" in each for each in stopped_tasks(unit).values())
    before = len(player.front_end.answers)
    entry = player.registry.snapshot().catalog.streams[STREAM]
    shops = where_of(player, "shop", 0)
    end = player.transport.end_offset(*shops)
    values = [event(99)[field.name] for field in entry.stream.fields]
    record = encode_event(entry.schema.version, "99", values[1], values, player.front_end.number, 7, 10_000)
    player.transport.append(*shops, [record])
    awaited(lambda: _answered(player) > before)
    assert player.transport.end_offset(*shops) == end + 1


def _answered(player: ClusterPlayer) -> int:
    player.front_end.collect()
    return len(player.front_end.answers)


def test_another_prefix_is_another_cluster(kafka: str, player: ClusterPlayer, tmp_path: Path) -> None:
    other = LocalUnit(kafka, own_prefix("other"), tmp_path / "other", 0, 1, SMALL)
    try:
        awaited(lambda: other.loop.is_ready)
        assert other.loop.hosts == {}
    finally:
        other.stop()
    with pytest.raises(TransportRefusedError, match="Choose another name"):
        KafkaRegistry(quick_settings(kafka), "no/prefix")


def test_a_dropped_stream_leaves_nothing(
    kafka: str, prefix: str, player: ClusterPlayer, tmp_path: Path
) -> None:
    unit = LocalUnit(kafka, prefix, tmp_path / "data", 0, 1, SMALL, grace_s=0.0)
    try:
        send(player, 0, 30)
        player.replies()
        assert len(list((tmp_path / "data" / "tasks").iterdir())) == 1
        player.registry.change(lambda catalog: [evolution.dropped_stream(catalog, STREAM)])
        awaited(lambda: not unit.loop.hosts and not list((tmp_path / "data" / "tasks").iterdir()))
        # One of the same name has nothing of it.
        player.apply(DEFINITIONS)
        player.front_end.sent.clear()
        player.front_end.answers.clear()
        send(player, 0, 30)
        check(player)
    finally:
        unit.stop()


def test_tasks_that_are_far_behind_do_not_keep_the_others_waiting(
    kafka: str, prefix: str, player: ClusterPlayer, tmp_path: Path
) -> None:
    behind = [where_of(player, "card", 0), where_of(player, "card", 1), where_of(player, "shop", 0)]
    # The events go to the fourth task alone.
    shop = next(shop for shop in range(100) if partition_of(partition_key(shop), 2) == 1)
    # The test does each round: a thread could be through with all of it before the test first looks.
    unit = LocalUnit(kafka, prefix, tmp_path / "data", 0, 1, SMALL, is_run=False)

    def left() -> int:
        hosts = [host for host in unit.loop.hosts.values() if host.place.where in behind]
        return sum(player.transport.end_offset(*host.place.where) - host.position for host in hosts)

    try:
        while not (len(unit.loop.hosts) == 4 and unit.loop.is_ready):
            unit.loop.round()
        records = backlog(player)
        player.transport.submit([Entry(where, records) for where in behind]).result(60)
        while left() > 3 * _BACKLOG - 3_000:
            unit.loop.round()
        for number in range(8):
            player.score({**event(number), "id": number, "card": None, "shop": shop})
            player.flush()
            while player.front_end.missing():
                before = {host.place.where: host.position for host in unit.loop.hosts.values()}
                unit.loop.round()
                for host in unit.loop.hosts.values():
                    assert host.position - before[host.place.where] <= unit_loop.ROUND_RECORDS
                # A reply takes its time on a busy machine: for each round there is some for those before to come.
                awaited_s = time.monotonic() + 1.0
                while player.front_end.missing() and time.monotonic() < awaited_s:
                    player.front_end.collect()
                assert left() > 3 * _BACKLOG // 2
    finally:
        unit.stop()


def backlog(player: ClusterPlayer) -> Records:
    """Events that nobody waits for."""
    entry = player.registry.snapshot().catalog.streams[STREAM]
    records = []
    for number in range(_BACKLOG):
        made = event(number)
        values = [made[field.name] for field in entry.stream.fields]
        records.append(encode_event(entry.schema.version, str(number), values[1], values))
    return Records.of(records)


def disturbed(broker: LocalBroker, folder: Path, times: int, pause_s: float) -> None:
    """Play while the broker is restarted, killed, and held up, so many times each."""
    status = broker.start(0, unheard)
    port = int(status.address.partition(":")[2])
    player = ClusterPlayer(status.address, "railgun")
    sent = 0
    try:
        player.apply(DEFINITIONS)
        unit = LocalUnit(status.address, "railgun", folder, 0, 1, SMALL)
        try:
            for number in range(3 * times):
                send(player, sent, 60)
                sent += 60
                if number % 3 == 0:
                    broker.stop()
                    status = started_again(broker, port)
                elif number % 3 == 1:
                    os.kill(status.pid, signal.SIGKILL)
                    os.waitpid(status.pid, 0)
                    status = started_again(broker, port)
                else:
                    halt(status.pid)
                    time.sleep(pause_s)
                    os.kill(status.pid, signal.SIGCONT)
                send(player, sent, 60)
                sent += 60
                player.front_end.await_all()
                assert unit.error is None
            check(player)
            player.await_processed()
        finally:
            unit.stop()
    finally:
        player.close()


@pytest.mark.timeout(300)
def test_the_broker_is_restarted_killed_and_held_up(broker: LocalBroker, tmp_path: Path) -> None:
    disturbed(broker, tmp_path / "data", 1, 3.0)


@pytest.mark.torture
def test_the_broker_is_restarted_killed_and_held_up_often(broker: LocalBroker, tmp_path: Path) -> None:
    disturbed(broker, tmp_path / "data", 5, 30.0)
