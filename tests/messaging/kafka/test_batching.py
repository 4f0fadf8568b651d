"""librdkafka is given no more than it sends, in order, whatever comes when; and what `close` does."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError
from hypothesis import given
from hypothesis import strategies as st

from railgun.messaging.kafka import batching as kafka_batching
from railgun.messaging.kafka.batching import (
    IN_FLIGHT_LIMIT,
    REQUEST_LIMIT_BYTES,
    BatchingProducer,
    Delivery,
    Submission,
)
from railgun.messaging.transport import Entry, TopicPartition
from railgun.wire.records import Records

_LIMIT_S = 60.0
_BOTH = {"pipelining", "batching"}


class _Message:
    def offset(self) -> int:
        return 7


class _Broker:
    """What two producers were given. answers: which of them it answers now.

    log: by partition, in order.  in_flight: by partition and producer, unanswered.
    """

    def __init__(self, *answers: str) -> None:
        self.answers = set(answers)
        self.log: dict[int, list[bytes]] = defaultdict(list)
        self.in_flight: dict[int, dict[str, int]] = defaultdict(lambda: {"pipelining": 0, "batching": 0})
        self.faults: list[str] = []
        self.lock = threading.RLock()

    def check(self, partition: int) -> None:
        pipelined, batched = self.in_flight[partition].values()
        if pipelined > IN_FLIGHT_LIMIT or (pipelined and batched):
            self.faults.append(f"{partition}: {pipelined} pipelined, {batched} in a batch")


class _Producer:
    """As librdkafka's: what waits for a report is reported in `poll` and `flush`."""

    def __init__(self, broker: _Broker, name: str) -> None:
        self.broker, self.name = broker, name
        self.unreported: list[tuple[int, Callable[[Any, Any], None]]] = []
        self.purged = False

    def __len__(self) -> int:
        return len(self.unreported)

    def produce_batch(
        self,
        topic: str,
        messages: Sequence[Mapping[str, Any]],
        partition: int,
        on_delivery: Callable[[Any, Any], None],
    ) -> int:
        with self.broker.lock:
            for message in messages:
                self.broker.log[partition].append(message["value"])
                self.unreported.append((partition, on_delivery))
            self.broker.in_flight[partition][self.name] += len(messages)
            self.broker.check(partition)
        return len(messages)

    def poll(self, timeout_s: float) -> int:
        time.sleep(0.0002)
        with self.broker.lock:
            if not (self.name in self.broker.answers or self.purged):
                return 0
            reported, self.unreported = self.unreported, []
            for partition, _ in reported:
                self.broker.in_flight[partition][self.name] -= 1
        for _, report in reported:
            report(KafkaError(KafkaError._PURGE_QUEUE) if self.purged else None, _Message())
        return len(reported)

    def flush(self, timeout_s: float) -> int:
        self.poll(timeout_s)
        return len(self)

    def purge(self) -> None:
        self.purged = True

    def close(self) -> None:
        assert not self.unreported


def _wait(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _LIMIT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)


class _Sent:
    """Entries that were sent, and those that are done. failed: why.  then: called when one is."""

    def __init__(self, broker: _Broker) -> None:
        self.broker = broker
        self.producers: list[_Producer] = []
        self.done = 0
        self.refusals = 0
        self.then: Callable[[], None] = lambda: None
        self.failed: list[KafkaError] = []
        self.expected: dict[int, list[bytes]] = defaultdict(list)
        self.producer = BatchingProducer(self._make)

    def _make(self, overrides: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
        if overrides and self.refusals:
            self.refusals -= 1
            raise OSError("too many open files")
        self.producers.append(_Producer(self.broker, "batching" if overrides else "pipelining"))
        return self.producers[-1]

    def send(self, partition: int, records: int, held_bytes: int = 1 << 20) -> None:
        own = [b"%d" % (len(self.expected[partition]) + i) for i in range(records)]
        self.expected[partition] += own
        entry = Entry(TopicPartition("t", partition), Records.of(own))
        self.producer.send(Delivery(Submission([0], 1, 0), 0, entry, records, held_bytes, self._delivered))

    def _delivered(self, delivery: Delivery) -> None:
        self.producer.finished(delivery)
        self.then()
        with self.broker.lock:
            self.done += 1
            if delivery.submission.error is not None:
                self.failed.append(delivery.submission.error)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from((1, 1, 2, 3, 5, 6, 40)), st.booleans()), max_size=60
    )
)
def test_no_more_than_is_sent_and_in_order(script: list[tuple[int, int, bool]]) -> None:
    broker = _Broker()
    sent = _Sent(broker)
    for partition, records, answers in script:
        broker.answers = _BOTH if answers else set()
        sent.send(partition, records)
    broker.answers = _BOTH
    sent.producer.close(_LIMIT_S)
    assert not broker.faults
    assert (sent.done, sent.failed) == (len(script), [])
    assert broker.log == sent.expected


def test_a_few_go_at_once_and_more_as_a_batch() -> None:
    broker = _Broker()
    sent = _Sent(broker)
    for _ in range(IN_FLIGHT_LIMIT):
        sent.send(0, 1)
    assert broker.in_flight[0]["pipelining"] == IN_FLIGHT_LIMIT
    for _ in range(3):
        sent.send(0, 1)
    assert broker.in_flight[0] == {"pipelining": IN_FLIGHT_LIMIT, "batching": 0}
    broker.answers = _BOTH
    sent.producer.close(_LIMIT_S)
    assert not broker.faults
    assert broker.log == sent.expected


def test_a_batch_is_no_more_than_one_request_holds() -> None:
    broker = _Broker("pipelining")
    sent = _Sent(broker)
    sent.send(0, IN_FLIGHT_LIMIT)
    for _ in range(3):
        sent.send(0, IN_FLIGHT_LIMIT + 1, REQUEST_LIMIT_BYTES - 1)
    deadline = time.monotonic() + _LIMIT_S
    while not broker.in_flight[0]["batching"]:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert broker.in_flight[0] == {"pipelining": 0, "batching": IN_FLIGHT_LIMIT + 1}
    broker.answers = _BOTH
    sent.producer.close(_LIMIT_S)
    assert not broker.faults
    assert broker.log == sent.expected


def test_nothing_overtakes_a_batch_of_few() -> None:
    broker = _Broker()
    sent = _Sent(broker)
    sent.send(0, IN_FLIGHT_LIMIT)
    sent.send(0, 1)
    # Not before: were the first ones answered by then, the last would not wait for them.
    broker.answers = {"pipelining"}
    deadline = time.monotonic() + _LIMIT_S
    while broker.in_flight[0] != {"pipelining": 0, "batching": 1}:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    sent.send(0, 1)
    assert broker.in_flight[0] == {"pipelining": 0, "batching": 1}
    broker.answers = _BOTH
    sent.producer.close(_LIMIT_S)
    assert not broker.faults
    assert broker.log == sent.expected


@pytest.mark.parametrize("records", [1, 30])
def test_what_was_never_sent_fails_when_it_is_closed(records: int) -> None:
    broker = _Broker()
    sent = _Sent(broker)
    for _ in range(2 * IN_FLIGHT_LIMIT):
        sent.send(0, records)
    sent.producer.close(0.05)
    assert sent.done == len(sent.failed) == 2 * IN_FLIGHT_LIMIT
    assert {error.code() for error in sent.failed} == {KafkaError._PURGE_QUEUE}
    assert sent.expected[0][: len(broker.log[0])] == broker.log[0]


def test_what_is_due_when_it_is_closed_fails_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that sends batches is late: what it was to send has been given up meanwhile."""
    broker = _Broker("pipelining")
    sent = _Sent(broker)
    gate = threading.Event()
    wait_for = sent.producer._changed.wait_for

    def late(condition: Callable[[], Any], timeout_s: float | None = None) -> Any:
        if threading.current_thread().name == "kafka-batches":
            # As where it gets no processor: others have the lock first.
            sent.producer._changed.release()
            gate.wait(_LIMIT_S)
            sent.producer._changed.acquire()
        return wait_for(condition, timeout_s)

    monkeypatch.setattr(sent.producer._changed, "wait_for", late)
    sent.send(0, IN_FLIGHT_LIMIT + 1)
    sent.send(0, 1)
    threading.Timer(0.3, gate.set).start()
    sent.producer.close(0.05)
    assert (sent.done, len(sent.failed)) == (2, 2)
    assert not broker.log


@pytest.mark.parametrize("is_closed", [True, False])
def test_others_can_look_while_what_was_given_up_ends(is_closed: bool) -> None:
    broker = _Broker(*(() if is_closed else _BOTH))
    sent = _Sent(broker)
    could_look: list[bool] = []

    def look_beside() -> None:
        thread = threading.Thread(target=lambda: sent.producer.unconfirmed, daemon=True)
        thread.start()
        thread.join(5)
        could_look.append(not thread.is_alive())

    sent.then = look_beside
    # It is closed while one batch is in flight and another one waits; or the first batch cannot be made.
    sent.refusals = 0 if is_closed else 2
    sent.send(0, 30)
    if is_closed:
        _wait(lambda: bool(broker.in_flight[0]["batching"]))
    sent.send(0, 30)
    _wait(lambda: is_closed or sent.done == 2)
    sent.producer.close(0.05)
    assert could_look == [True, True]
    assert sent.failed


def test_a_batch_fails_where_no_producer_can_be_made_and_the_next_one_tries_again() -> None:
    broker = _Broker(*_BOTH)
    sent = _Sent(broker)
    # One with the first record that goes at once, one when there is something for it.
    sent.refusals = 2
    sent.send(0, IN_FLIGHT_LIMIT + 1)
    _wait(lambda: bool(sent.done))
    assert [(error.code(), error.str()) for error in sent.failed] == [
        (KafkaError._FAIL, "too many open files")
    ]
    sent.send(0, IN_FLIGHT_LIMIT + 1)
    sent.producer.close(_LIMIT_S)
    assert (sent.done, len(sent.failed)) == (2, 1)
    assert len(broker.log[0]) == IN_FLIGHT_LIMIT + 1


def test_the_batching_producer_is_made_before_the_first_batch() -> None:
    broker = _Broker(*_BOTH)
    sent = _Sent(broker)
    assert [each.name for each in sent.producers] == ["pipelining"]
    sent.send(0, 1)
    _wait(lambda: [each.name for each in sent.producers] == ["pipelining", "batching"])
    sent.send(0, IN_FLIGHT_LIMIT + 1)
    sent.producer.close(_LIMIT_S)
    assert (len(sent.producers), sent.done, sent.failed) == (2, 2, [])


def test_what_was_given_up_is_logged_and_a_thread_that_does_not_come_back_is_left(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kafka_batching, "_JOIN_S", 0.05)
    monkeypatch.setattr(_Producer, "purge", lambda self: None)
    sent = _Sent(_Broker())
    sent.send(0, 1)
    sent.send(0, 30)
    assert sent.producer.unconfirmed == 31
    closing = threading.Thread(target=sent.producer.close, args=(0.05,), daemon=True)
    closing.start()
    closing.join(_LIMIT_S)
    assert not closing.is_alive()
    assert "the broker has not confirmed it: 31 records" in caplog.text
    sent.broker.answers = _BOTH
    _wait(lambda: sent.done == 2)
