"""A submission that failed ends at once, and nothing more of it is sent: the log does not have its tail without its
head."""

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from railgun.messaging.kafka.batching import BatchingProducer, Delivery, Submission
from railgun.messaging.kafka.producer import split_entry
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.transport import Entry, TopicPartition
from railgun.wire.records import Records

_LIMIT_S = 60.0
# More than a batch may linger.
_TIMEOUT_MS = 1_100
_MIB = 1 << 20


class _Sent:
    """Submissions to an address where nobody listens. given: by partition, the records that librdkafka was given.

    settled: submissions in the order in which they ended.  then: called when one does.
    """

    def __init__(self, **settings: int) -> None:
        passed = {"message_timeout_ms": _TIMEOUT_MS, **settings}
        self.settings = KafkaSettings(
            "127.0.0.1:1", pass_through={key.replace("_", "."): value for key, value in passed.items()}
        )
        self.given: dict[int, list[bytes]] = defaultdict(list)
        self.settled: list[Submission] = []
        self.then: Callable[[], None] = lambda: None
        self.changed = threading.Condition()
        self.producer = BatchingProducer(self._create)

    def _create(self, overrides: Mapping[str, Any], defaults: Mapping[str, Any]) -> Producer:
        given = self.given

        class Noting(Producer):
            def produce_batch(
                self, topic: str, messages: Sequence[Mapping[str, Any]], partition: int, **more: Any
            ) -> int:
                given[partition] += [message["value"] for message in messages]
                return super().produce_batch(topic, messages, partition, **more)

        return Noting({**defaults, **self.settings.producer(), **overrides})

    def send(self, partition: int, records: Sequence[bytes]) -> Submission:
        where = TopicPartition("t", partition)
        parts = split_entry(Entry(where, Records.of(records)))
        submission = Submission([0], len(parts), sum(part.held_bytes for part in parts))
        for number, part in enumerate(parts):
            index = None if number else 0
            self.producer.send(Delivery(submission, index, *part, self._delivered))
        return submission

    def wait(self, submissions: int) -> list[Submission]:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.settled) == submissions, _LIMIT_S)
        return self.settled

    def _delivered(self, delivery: Delivery) -> None:
        self.producer.finished(delivery)
        submission = delivery.submission
        with self.changed:
            submission.deliveries_left -= 1
            if submission.deliveries_left:
                return
        self.then()
        with self.changed:
            self.settled.append(submission)
            self.changed.notify_all()


def _code(submission: Submission) -> int:
    assert submission.error is not None
    return submission.error.code()


def _numbered(records: int, size_bytes: int) -> list[bytes]:
    return [b"%d" % number + bytes(size_bytes) for number in range(records)]


@pytest.mark.parametrize(("records", "size_bytes"), [(12, _MIB), (20_000, 1_000)])
def test_what_waits_behind_its_failed_head_is_not_sent(records: int, size_bytes: int) -> None:
    sent = _Sent()
    large = _numbered(records, size_bytes)
    submission = sent.send(0, large)
    head, *rest = split_entry(Entry(TopicPartition("t", 0), Records.of(large)))
    assert len(rest) > 2
    behind = [sent.send(0, [b"behind"]), sent.send(0, [b"after"] * 10)]
    assert sent.wait(3) == [submission, *behind]
    assert {_code(each) for each in sent.settled} == {KafkaError._MSG_TIMED_OUT}
    assert sent.given[0] == [*large[: head.records], b"behind", *[b"after"] * 10]
    sent.producer.close(_LIMIT_S)


def test_what_comes_after_its_head_was_refused_is_not_sent() -> None:
    sent = _Sent(queue_buffering_max_messages=1)
    first = sent.send(1, [b"fills the queue"])
    large = _numbered(6, _MIB)
    submission = sent.send(0, large)
    assert sent.wait(2) == [submission, first]
    assert (_code(submission), _code(first)) == (KafkaError._QUEUE_FULL, KafkaError._MSG_TIMED_OUT)
    assert sent.given[0] == large[:3]
    sent.producer.close(_LIMIT_S)


def test_others_can_send_while_dropped_submissions_end() -> None:
    sent = _Sent()
    were_done: list[bool] = []

    def send_beside() -> None:
        sent.then = lambda: None
        thread = threading.Thread(target=sent.send, args=(1, [b"beside"]), daemon=True)
        thread.start()
        thread.join(5)
        were_done.append(not thread.is_alive())

    sent.then = send_beside
    sent.send(0, _numbered(12, _MIB))
    sent.wait(2)
    assert were_done == [True]
    sent.producer.close(_LIMIT_S)
