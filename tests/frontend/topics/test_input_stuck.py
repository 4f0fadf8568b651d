"""A transaction whose client never comes back: the input begins anew, and each reply is in the output topic once."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from frontend.topics import inputs
from railgun.config.settings import InputSettings
from railgun.messaging.kafka import output as kafka_output
from railgun.messaging.kafka.output import TransactionalOutput
from railgun.messaging.kafka.settings import KafkaSettings
from tests.frontend.conftest import PAYMENTS
from tests.frontend.kafka.cluster import LocalCluster
from tests.frontend.topics.input_topic import InputTopic
from tests.frontend.topics.test_input_topic import define

_EVENTS = 100


class Silent:
    """A producer that waits without end for the group's broker, as librdkafka does where that was gone for a moment."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self.is_waited_for, self.let_go = threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def send_offsets_to_transaction(self, *pending: Any) -> None:
        self.is_waited_for.set()
        self.let_go.wait()
        self._producer.send_offsets_to_transaction(*pending)


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Silent]]:
    """What the first output that is made writes with."""
    made: list[Silent] = []

    class FirstIsSilent(TransactionalOutput):
        def __init__(self, settings: KafkaSettings, name: str) -> None:
            super().__init__(settings, name)
            if not made:
                made.append(Silent(self._producer))
                replaced: Any = made[0]
                self._producer = replaced

    monkeypatch.setattr(inputs, "TransactionalOutput", FirstIsSilent)
    monkeypatch.setattr(kafka_output, "_POSITIONS_S", 2.0)
    monkeypatch.setattr(kafka_output, "_STUCK_S", 0.0)
    yield made
    for each in made:
        each.let_go.set()


def test_a_transaction_that_does_not_come_to_its_end(
    kafka: str, tmp_path: Path, event: Callable[..., dict[str, Any]], silent: list[Silent]
) -> None:
    with LocalCluster(kafka, tmp_path) as cluster:
        define(cluster, PAYMENTS)
        cluster.start_units(1)
        with InputTopic(kafka, cluster.prefix, "payments") as topic:
            cluster.serve(intake=InputSettings(transactional=True))
            sent = [event(card="in") for _ in range(_EVENTS)]
            topic.send(sent)
            replies = topic.await_replies(_EVENTS)
            assert silent[0].is_waited_for.is_set()
            # What was under way comes too late.
            silent[0].let_go.set()
            sent += [event(card="in") for _ in range(_EVENTS)]
            topic.send(sent[_EVENTS:])
            replies = topic.await_replies(2 * _EVENTS)
            assert [reply["id"] for reply in replies] == [each["tx_id"] for each in sent]
            assert [reply["metrics"]["n7"] for reply in replies] == list(range(1, 2 * _EVENTS + 1))
