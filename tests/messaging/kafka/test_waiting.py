"""Whoever waits for a slow broker takes no core from whoever is to answer: however much there is to write."""

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from railgun.broker.local import LocalBroker, Status
from railgun.messaging.kafka.group import GroupMember, leave
from railgun.messaging.kafka.output import Outgoing, TransactionalOutput
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Entry, TopicPartition
from railgun.wire.records import Records
from tests.broker.quick_broker import unheard
from tests.halting import halt
from tests.messaging.in_time import in_time
from tests.proc import of_threads

_TICKS_S = os.sysconf("SC_CLK_TCK")
# One that turns in circles takes all of a core that others leave it: a fifth even on a busy machine.
_SHARE_MAX = 0.1
_PATIENCE_S = 60.0


def _used_s() -> float:
    """The time that librdkafka's threads for brokers have taken of all cores."""
    used = 0
    for stat in of_threads(os.getpid(), "stat"):
        name, _, rest = stat.partition("(")[2].rpartition(")")
        if name.startswith("rdk:broker"):
            used += sum(map(int, rest.split()[11:13]))
    return used / _TICKS_S


class _Nobody:
    def start(self, where: TopicPartition, committed: int) -> int | None: ...

    def assigned(self, partitions: list[TopicPartition]) -> None: ...

    def revoked(self, partitions: list[TopicPartition]) -> None: ...

    def lost(self, partitions: list[TopicPartition]) -> None: ...

    def committed(self, positions: Mapping[TopicPartition, int]) -> None: ...


@contextmanager
def _slow(status: Status) -> Iterator[None]:
    """A broker that does nothing most of the time."""
    ended = threading.Event()

    def stop_and_go() -> None:
        while not ended.is_set():
            halt(status.pid)
            ended.wait(0.25)
            os.kill(status.pid, signal.SIGCONT)
            ended.wait(0.02)

    thread = threading.Thread(target=stop_and_go)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_many_small_records_submitted_at_once(broker: LocalBroker) -> None:
    where, records = TopicPartition("t", 0), [b"%06d" % number for number in range(150_000)]
    status = broker.start(0, unheard)
    with KafkaTransport(KafkaSettings(status.address)) as transport:
        transport.create_topic("t", 2)
        # So many that they are a batch: the batching producer has a connection then.
        transport.append(*where, [b"first"] * 10)
        halt(status.pid)
        try:
            future = transport.submit(
                [Entry(where, Records.of(records)), Entry(TopicPartition("t", 1), Records.of([b"beside"]))]
            )
            time.sleep(2.0)
            before_s, begun_s = _used_s(), time.monotonic()
            time.sleep(1.5)
            share = (_used_s() - before_s) / (time.monotonic() - begun_s)
        finally:
            os.kill(status.pid, signal.SIGCONT)
        assert future.result(60) == [10, 0]
        assert share < _SHARE_MAX
        offset, found = 10, list[bytes]()
        while offset < 10 + len(records):
            fetched = transport.read(*where, offset, 100_000, 8 << 20)
            found += fetched.values()
            offset = fetched.next_offset
        assert found == records


def test_a_large_transaction(broker: LocalBroker) -> None:
    status = broker.start(0, unheard)
    settings = KafkaSettings(status.address)
    with KafkaTransport(settings) as transport:
        transport.create_topic("in", 1)
        transport.create_topic("out", 1)
    reading = GroupMember(settings, "g", ["in"], _Nobody())
    output = TransactionalOutput(settings, "writer")
    values = [bytes(500)] * 6_000
    outgoing = Outgoing("out", values, [b"key"] * len(values))

    def write() -> None:
        in_time(lambda: output.write(lambda: ([outgoing], {TopicPartition("in", 0): 0}), reading), attempts=1)

    try:
        deadline = time.monotonic() + _PATIENCE_S
        while reading.metadata is None:
            assert time.monotonic() < deadline
            reading.poll(0.1, 1)
        write()
        with _slow(status):
            before_s, begun_s = _used_s(), time.monotonic()
            write()
            share = (_used_s() - before_s) / (time.monotonic() - begun_s)
        assert share < _SHARE_MAX
    finally:
        if not output.is_stuck:
            output.close()
        leave(reading)
