"""A task in a unit: what it has checkpointed it has answered, for good; what cannot be sent to anybody is dropped."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from railgun.catalog.changes import AddMetric, Change, PutStream, change_to_json
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.task_key import TaskKey
from railgun.host.lanes import HostLanes
from railgun.host.place import Place
from railgun.host.task_host import TaskHost
from railgun.messaging.embedded.log import Durability, EmbeddedLog
from railgun.messaging.errors import TransportUnavailableError
from railgun.messaging.transport import Entry, TopicPartition
from railgun.registry.topics import Topics
from railgun.task.environment import TaskEnvironment
from railgun.task.settings import TaskIdentity
from railgun.unit import held_replies
from railgun.unit.hosting import Hosting
from railgun.unit.sending import Sending
from railgun.wire.control_records import encode_control
from railgun.wire.encode import encode_event
from railgun.wire.reply import decode_reply
from tests.unit.local_units import SMALL
from tests.unit.processes import DEFINITIONS, event

_TOPICS = Topics()
_WHERE = TopicPartition(_TOPICS.tasks("s", "card"), 0)
_FRONT_END = 5
_SETTINGS = replace(SMALL, checkpoint_interval_s=0.0)


class HeldLog(EmbeddedLog):
    """A log that acknowledges replies when it is told to."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, Durability.OS)
        self.held: list[tuple[Future[list[int]], Future[list[int]]]] = []
        self.holds = False

    def submit(self, entries: Sequence[Entry]) -> "Future[list[int]]":
        future = super().submit(entries)
        if not self.holds or entries[0].where.topic != _TOPICS.replies(_FRONT_END):
            return future
        shown: Future[list[int]] = Future()
        self.held.append((future, shown))
        return shown

    def release(self, topic: str, partition: int) -> None:
        """Nothing is read ahead here."""

    def acknowledge(self) -> None:
        for future, shown in self.held:
            shown.set_result(future.result())
        self.held.clear()

    def fail(self) -> None:
        for _, shown in self.held:
            shown.set_exception(TransportUnavailableError("replies", "it did not answer", "Try again"))
        self.held.clear()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[HeldLog]:
    opened = HeldLog(tmp_path / "log")
    definitions = parse_definitions(DEFINITIONS)
    stream = definitions.streams["s"]
    changes: list[Change] = [PutStream(1, stream, 1)]
    changes += [AddMetric(place, metric) for place, metric in enumerate(definitions.metrics, 2)]
    try:
        opened.create_topic(_WHERE.topic, 2)
        opened.append(*_WHERE, [encode_control(change_to_json(change)) for change in changes])
        yield opened
    finally:
        opened.close()


@pytest.fixture
def host(log: HeldLog, tmp_path: Path) -> Iterator[TaskHost]:
    place = Place(
        TaskKey("s", 1, "card", 0),
        TaskIdentity("s", "card", 0, bytes(16)),
        _WHERE,
        tmp_path / "task",
        tmp_path / "ready",
    )
    environment = TaskEnvironment()
    lanes = HostLanes(environment.executor, 1)
    opened = Hosting(log, Sending(log, _TOPICS), environment, lanes).host(place, _SETTINGS)
    try:
        opened.open()
        yield opened
    finally:
        opened.close()
        lanes.close()


def records(count: int) -> list[bytes]:
    found = []
    for number in range(count):
        values = list(event(number).values())
        found.append(encode_event(1, str(number), values[1], values, _FRONT_END, 1, number))
    return found


def take_all(host: TaskHost, log: HeldLog) -> None:
    end = log.end_offset(*_WHERE)
    while host.position < end:
        host.take(log.read(*_WHERE, host.position, 7, 1 << 20))


def worked_until(host: TaskHost, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        host.work()


def test_a_checkpoint_waits_until_the_replies_before_it_are_acknowledged(
    host: TaskHost, log: HeldLog
) -> None:
    log.create_topic(_TOPICS.replies(_FRONT_END), 1)
    take_all(host, log)
    before = host.position
    log.holds = True
    log.append(*_WHERE, records(50))
    take_all(host, log)
    worked_until(host, lambda: host.task.checkpointer.is_in_flight)
    for _ in range(200):
        host.work()
        time.sleep(0.001)
    assert host.task.checkpointer.is_in_flight
    # It only waits: that shall not keep a processor busy.
    assert not host.work()
    assert host.task.checkpoints.durable_position <= before == host.replied()
    log.acknowledge()
    worked_until(host, lambda: host.task.checkpoints.durable_position == host.position)
    assert host.replied() == host.position == before + 50


def test_replies_that_could_not_be_given_end_the_unit(
    host: TaskHost, log: HeldLog, caplog: pytest.LogCaptureFixture
) -> None:
    log.create_topic(_TOPICS.replies(_FRONT_END), 1)
    take_all(host, log)
    host.checkpoint()
    durable = host.position
    log.holds = True
    log.append(*_WHERE, records(5))
    take_all(host, log)
    log.fail()
    with pytest.raises(TransportUnavailableError):
        host.replied()
    with pytest.raises(TransportUnavailableError):
        host.checkpoint()
    assert f"the next start processes 5 records again, from offset {durable} on" in caplog.text


def test_a_front_end_that_is_gone_holds_nothing_up_for_long(
    host: TaskHost, log: HeldLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_replies, "GONE_S", 3.0)
    before = host.position
    log.append(*_WHERE, records(20))
    take_all(host, log)
    # Its topic may have been made just now.
    assert host.replied() < before + 20
    host.checkpoint()
    assert host.replied() == host.position
    assert host.task.checkpoints.durable_position == host.position


def test_what_cannot_be_read_is_answered_to_nobody(host: TaskHost, log: HeldLog) -> None:
    replies = _TOPICS.replies(_FRONT_END)
    log.create_topic(replies, 1)
    # Of the same place in a batch as the one before it, whose header may still stand there.
    for record in (records(1)[0], b"\x01\xc1 no record", records(2)[1]):
        log.append(*_WHERE, [record])
        take_all(host, log)
    host.checkpoint()
    batches = [decode_reply(value) for value in log.read(replies, 0, 0, 100, 1 << 20).values()]
    assert [batch.sequence.tolist() for batch in batches] == [[0], [1]]
    assert log.read(_TOPICS.dead("s"), 0, 0, 100, 1 << 20).values() == [b"\x01\xc1 no record"]
