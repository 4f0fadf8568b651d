"""A broker that stops answering, is killed, or comes back: nothing acknowledged is lost, order is kept."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import pairwise

import pytest
from confluent_kafka.admin._metadata import ClusterMetadata

from railgun.broker.local import LocalBroker, Status
from railgun.messaging.errors import TransportFullError, TransportUnavailableError
from railgun.messaging.kafka.clients import AdminClient
from railgun.messaging.kafka.output import TransactionalOutput
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.sole_writer import KafkaSoleWriter
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Entry, TopicPartition
from railgun.wire.records import Records
from tests.broker.own_topics import own_prefix
from tests.broker.quick_broker import quick_broker, running, started_again
from tests.halting import halt
from tests.unit.local_units import awaited


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """One for these tests, each of which has topics of its own and leaves it running."""
    found = quick_broker(tmp_path_factory.mktemp("broker") / "a folder")
    try:
        yield found
    finally:
        found.stop()


@pytest.fixture
def where() -> TopicPartition:
    """In a topic that is not there yet."""
    return TopicPartition(own_prefix("t"), 0)


def _opened(status: Status, **settings: int) -> KafkaTransport:
    quick = {"fetch.wait.max.ms": 10, "reconnect.backoff.max.ms": 200}
    passed = {**quick, **{key.replace("_", "."): value for key, value in settings.items()}}
    return KafkaTransport(KafkaSettings(status.address, pass_through=passed))


def _read_from(transport: KafkaTransport, where: TopicPartition, offset: int, end: int) -> list[bytes]:
    found: list[bytes] = []
    while offset < end:
        for fetched in transport.fetch({where: offset}, 1_000, 1 << 20, 1.0):
            found += fetched.values()
            offset = fetched.next_offset
    return found


@pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.torture)])
def test_a_broker_that_is_killed_and_started_again(
    broker: LocalBroker, where: TopicPartition, times: int
) -> None:
    status = running(broker)
    port = int(status.address.partition(":")[2])
    with _opened(status) as transport:
        transport.create_topic(where.topic, 1)
        stopped = threading.Event()
        futures: list[Future[list[int]]] = []

        def write() -> None:
            while not stopped.wait(0.002):
                serial = len(futures)
                futures.append(
                    transport.submit([Entry(where, Records.of([b"%d:%d" % (serial, i) for i in range(3)]))])
                )

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(times):
                seen = transport.end_offset(*where)
                _read_from(transport, where, 0, seen)
                os.kill(status.pid, signal.SIGKILL)
                os.waitpid(status.pid, 0)
                status = started_again(broker, port)
                while transport.end_offset(*where) <= seen:
                    time.sleep(0.05)
        finally:
            stopped.set()
            writer.join()
        offsets = [future.result(120)[0] for future in futures]
        assert offsets == [3 * serial for serial in range(len(futures))]
        expected = [b"%d:%d" % (serial, i) for serial in range(len(futures)) for i in range(3)]
        assert _read_from(transport, where, 0, len(expected)) == expected


def _is_appended(transport: KafkaTransport, topic: str, partition: int) -> bool:
    with suppress(TransportUnavailableError):
        transport.append(topic, partition, [b"first"])
        return True
    return False


def test_a_broker_that_does_not_answer(broker: LocalBroker, where: TopicPartition) -> None:
    status = running(broker)
    with _opened(status) as patient, _opened(status, message_timeout_ms=1_500) as hasty:
        patient.create_topic(where.topic, 2)
        # What is given up may be written all the same, when the broker answers again: not among the others.
        # Its first record may well take longer than it waits.
        awaited(lambda: _is_appended(hasty, where.topic, 1))
        patient.append(*where, [b"second"])
        halt(status.pid)
        try:
            with pytest.raises(TransportUnavailableError, match=f"{where.topic}-1"):
                hasty.append(where.topic, 1, [b"given up"])
            block = Entry(where, Records.of([bytes(1 << 20)] * 4))
            futures = [patient.submit([block]) for _ in range(15)]
            with pytest.raises(TransportFullError):
                patient.submit([block])
            assert not any(future.done() for future in futures)
        finally:
            os.kill(status.pid, signal.SIGCONT)
        firsts = [future.result(60)[0] for future in futures]
        assert [after - before for before, after in pairwise(firsts)] == [4] * 14


def test_closing_while_the_broker_does_not_answer_says_what_was_not_written(
    broker: LocalBroker, where: TopicPartition
) -> None:
    status = running(broker)
    transport = KafkaTransport(KafkaSettings(status.address))
    try:
        transport.create_topic(where.topic, 1)
        transport.append(*where, [b"first"])
        halt(status.pid)
        future = transport.submit([Entry(where, Records.of([b"never"]))])
    finally:
        transport.close(within_s=1.0)
        os.kill(status.pid, signal.SIGCONT)
    with pytest.raises(TransportUnavailableError):
        future.result(0)


@pytest.mark.parametrize("kind", [TransactionalOutput, KafkaSoleWriter])
def test_a_transaction_is_left_to_a_broker_that_does_not_answer(
    broker: LocalBroker, where: TopicPartition, kind: type[TransactionalOutput | KafkaSoleWriter]
) -> None:
    status = running(broker)
    settings = KafkaSettings(status.address)
    with KafkaTransport(settings) as transport:
        transport.create_topic(where.topic, 1)
    writer = kind(settings, f"writer of {where.topic}")
    writer._producer.begin_transaction()
    writer._producer.produce(where.topic, b"never", partition=0)
    assert not writer._producer.flush(30)
    halt(status.pid)
    # What hangs in C hears of no limit.
    closing = threading.Thread(target=writer.close, daemon=True)
    closing.start()
    closing.join(30)
    os.kill(status.pid, signal.SIGCONT)
    assert not closing.is_alive()


def test_topics_are_asked_for_no_longer_than_an_answer_may_take(
    broker: LocalBroker, where: TopicPartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a broker tells what there is, and has no controller that could change it."""
    status = running(broker)
    limit_s = 5.0
    with KafkaTransport(KafkaSettings(status.address, answer_timeout_s=limit_s)) as transport:
        monkeypatch.setattr(transport._topics, "all", dict)
        halt(status.pid)
        try:
            for ask in (
                lambda: transport.create_topic(where.topic, 1),
                lambda: transport.delete_topic(where.topic),
            ):
                begun_s = time.monotonic()
                with pytest.raises(TransportUnavailableError):
                    ask()
                assert time.monotonic() - begun_s < 5 * limit_s
        finally:
            os.kill(status.pid, signal.SIGCONT)


def test_offsets_are_asked_for_no_longer_than_the_caller_waits(
    broker: LocalBroker, where: TopicPartition
) -> None:
    status = running(broker)
    with _opened(status) as transport:
        transport.create_topic(where.topic, 1)
        transport.append(*where, [b"a"])
        assert (transport.start_offset(*where, 5.0), transport.end_offset(*where, 5.0)) == (0, 1)
        halt(status.pid)
        try:
            for ask in (transport.start_offset, transport.end_offset):
                begun_s = time.monotonic()
                with pytest.raises(TransportUnavailableError):
                    ask(*where, 0.5)
                assert time.monotonic() - begun_s < transport.settings.answer_timeout_s / 2
        finally:
            os.kill(status.pid, signal.SIGCONT)


def test_topics_are_changed_once_there_is_a_controller(
    broker: LocalBroker, where: TopicPartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client would wait for one in vain: it asks for metadata once, and all brokers may be fenced then."""
    with _opened(running(broker)) as transport:
        client = transport._topics._client
        ask, fenced = client.list_topics, [3]

        def list_topics(timeout: float) -> ClusterMetadata:
            found = ask(timeout=timeout)
            if fenced[0]:
                fenced[0] -= 1
                found.controller_id = -1
            return found

        def change(kind: str, *args: object, **limits: float) -> object:
            assert not fenced[0]
            return getattr(AdminClient, kind)(client, *args, **limits)

        monkeypatch.setattr(client, "list_topics", list_topics)
        for kind in ("create_topics", "delete_topics"):
            monkeypatch.setattr(client, kind, partial(change, kind))
        transport.create_topic(where.topic, 1)
        fenced[0] = 3
        transport.delete_topic(where.topic)
        assert where.topic not in transport.topics()


def test_what_a_broker_that_starts_again_has_is_never_taken_for_missing(
    broker: LocalBroker, where: TopicPartition
) -> None:
    status = running(broker)
    port = int(status.address.partition(":")[2])
    with _opened(status) as transport:
        transport.create_topic(where.topic, 1)
        transport.append(*where, [b"a"])
        broker.stop()
        starting = threading.Thread(target=started_again, args=(broker, port))
        starting.start()
        asked = 0
        while starting.is_alive() or asked < 20:
            try:
                assert transport.topics()[where.topic] == 1
                asked += 1
                assert transport.end_offset(*where) == 1
            except TransportUnavailableError:
                pass
        starting.join()
