"""What a producer is given: no more than it sends, in order, whatever comes when; and what closing does."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError
from hypothesis import given
from hypothesis import strategies as st

from railgun.messaging.kafka import lanes as kafka_lanes
from railgun.messaging.kafka.lanes import AT_ONCE, KafkaLanes
from railgun.messaging.kafka.parts import TOGETHER_BYTES
from railgun.messaging.kafka.submission import Delivery, KafkaSubmission
from railgun.messaging.transport import Entry, TopicPartition

_LIMIT_S = 60.0
_BOTH = {"single", "together"}


class _Message:
    def offset(self) -> int:
        return 7


class _Broker:
    """What two producers were given. answers: which of them it answers now.

    log: by partition, in order.  under_way: by partition and producer, unanswered.
    """

    def __init__(self, *answers: str) -> None:
        self.answers = set(answers)
        self.log: dict[int, list[bytes]] = defaultdict(list)
        self.under_way: dict[int, dict[str, int]] = defaultdict(lambda: {"single": 0, "together": 0})
        self.faults: list[str] = []
        self.lock = threading.RLock()

    def check(self, partition: int) -> None:
        single, together = self.under_way[partition].values()
        if single > AT_ONCE or (single and together):
            self.faults.append(f"{partition}: {single} single, {together} together")


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
            self.broker.under_way[partition][self.name] += len(messages)
            self.broker.check(partition)
        return len(messages)

    def poll(self, timeout_s: float) -> int:
        time.sleep(0.0002)
        with self.broker.lock:
            if not (self.name in self.broker.answers or self.purged):
                return 0
            reported, self.unreported = self.unreported, []
            for partition, _ in reported:
                self.broker.under_way[partition][self.name] -= 1
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
    """Entries that were sent, and those that are done. failed: why."""

    def __init__(self, broker: _Broker) -> None:
        self.broker = broker
        self.producers: list[_Producer] = []
        self.done = 0
        self.refusals = 0
        self.failed: list[KafkaError] = []
        self.expected: dict[int, list[bytes]] = defaultdict(list)
        self.lanes = KafkaLanes(self._make)

    def _make(self, wanted: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
        if wanted and self.refusals:
            self.refusals -= 1
            raise OSError("too many open files")
        self.producers.append(_Producer(self.broker, "together" if wanted else "single"))
        return self.producers[-1]

    def send(self, partition: int, records: int, held_bytes: int = 1 << 20) -> None:
        own = [b"%d" % (len(self.expected[partition]) + i) for i in range(records)]
        self.expected[partition] += own
        where = TopicPartition("t", partition)
        delivery = Delivery(KafkaSubmission(1, 1, 0), 0, records, held_bytes, where, self._delivered)
        self.lanes.send(Entry(where, own), delivery)

    def _delivered(self, delivery: Delivery) -> None:
        self.lanes.landed(delivery)
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
    sent.lanes.close(_LIMIT_S)
    assert not broker.faults
    assert (sent.done, sent.failed) == (len(script), [])
    assert broker.log == sent.expected


def test_a_few_go_at_once_and_many_together() -> None:
    broker = _Broker()
    sent = _Sent(broker)
    for _ in range(AT_ONCE):
        sent.send(0, 1)
    assert broker.under_way[0]["single"] == AT_ONCE
    for _ in range(3):
        sent.send(0, 1)
    assert broker.under_way[0] == {"single": AT_ONCE, "together": 0}
    broker.answers = _BOTH
    sent.lanes.close(_LIMIT_S)
    assert not broker.faults
    assert broker.log == sent.expected


def test_together_goes_no_more_than_one_request_holds() -> None:
    broker = _Broker("single")
    sent = _Sent(broker)
    sent.send(0, AT_ONCE)
    for _ in range(3):
        sent.send(0, AT_ONCE + 1, TOGETHER_BYTES - 1)
    deadline = time.monotonic() + _LIMIT_S
    while not broker.under_way[0]["together"]:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert broker.under_way[0] == {"single": 0, "together": AT_ONCE + 1}
    broker.answers = _BOTH
    sent.lanes.close(_LIMIT_S)
    assert not broker.faults
    assert broker.log == sent.expected


def test_nothing_overtakes_the_few_that_went_together() -> None:
    broker = _Broker()
    sent = _Sent(broker)
    sent.send(0, AT_ONCE)
    sent.send(0, 1)
    # Not before: were the first ones answered by then, the last would not wait for them.
    broker.answers = {"single"}
    deadline = time.monotonic() + _LIMIT_S
    while broker.under_way[0] != {"single": 0, "together": 1}:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    sent.send(0, 1)
    assert broker.under_way[0] == {"single": 0, "together": 1}
    broker.answers = _BOTH
    sent.lanes.close(_LIMIT_S)
    assert not broker.faults
    assert broker.log == sent.expected


@pytest.mark.parametrize("records", [1, 30])
def test_what_never_went_is_told_so_at_the_end(records: int) -> None:
    broker = _Broker()
    sent = _Sent(broker)
    for _ in range(2 * AT_ONCE):
        sent.send(0, records)
    sent.lanes.close(0.05)
    assert sent.done == len(sent.failed) == 2 * AT_ONCE
    assert {error.code() for error in sent.failed} == {KafkaError._PURGE_QUEUE}
    assert sent.expected[0][: len(broker.log[0])] == broker.log[0]


def test_what_is_due_when_it_ends_is_told_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that sends together is late: what it was to send has been given up meanwhile."""
    broker = _Broker("single")
    sent = _Sent(broker)
    gate = threading.Event()
    wait_for = sent.lanes._changed.wait_for

    def late(condition: Callable[[], Any], timeout_s: float | None = None) -> Any:
        if threading.current_thread().name == "kafka-together":
            # As where it gets no processor: others have the lock first.
            sent.lanes._changed.release()
            gate.wait(_LIMIT_S)
            sent.lanes._changed.acquire()
        return wait_for(condition, timeout_s)

    monkeypatch.setattr(sent.lanes._changed, "wait_for", late)
    sent.send(0, AT_ONCE + 1)
    sent.send(0, 1)
    threading.Timer(0.3, gate.set).start()
    sent.lanes.close(0.05)
    assert (sent.done, len(sent.failed)) == (2, 2)
    assert not broker.log


def test_what_cannot_go_together_is_told_why_and_the_next_is_tried() -> None:
    broker = _Broker(*_BOTH)
    sent = _Sent(broker)
    # One with the first record that goes at once, one when there is something for it.
    sent.refusals = 2
    sent.send(0, AT_ONCE + 1)
    _wait(lambda: bool(sent.done))
    assert [(error.code(), error.str()) for error in sent.failed] == [
        (KafkaError._FAIL, "too many open files")
    ]
    sent.send(0, AT_ONCE + 1)
    sent.lanes.close(_LIMIT_S)
    assert (sent.done, len(sent.failed)) == (2, 1)
    assert len(broker.log[0]) == AT_ONCE + 1


def test_what_sends_together_is_made_before_anything_waits_for_it() -> None:
    broker = _Broker(*_BOTH)
    sent = _Sent(broker)
    assert [each.name for each in sent.producers] == ["single"]
    sent.send(0, 1)
    _wait(lambda: [each.name for each in sent.producers] == ["single", "together"])
    sent.send(0, AT_ONCE + 1)
    sent.lanes.close(_LIMIT_S)
    assert (len(sent.producers), sent.done, sent.failed) == (2, 2, [])


def test_what_was_given_up_is_logged_and_a_thread_that_does_not_come_back_is_left(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kafka_lanes, "_JOIN_S", 0.05)
    monkeypatch.setattr(_Producer, "purge", lambda self: None)
    sent = _Sent(_Broker())
    sent.send(0, 1)
    sent.send(0, 30)
    assert sent.lanes.unconfirmed == 31
    closing = threading.Thread(target=sent.lanes.close, args=(0.05,), daemon=True)
    closing.start()
    closing.join(_LIMIT_S)
    assert not closing.is_alive()
    assert "31 records were given up" in caplog.text
    sent.broker.answers = _BOTH
    _wait(lambda: sent.done == 2)
