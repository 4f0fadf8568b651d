"""Answers find back: repeats, strangers, timeouts, limits, and units that stand still."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaTopicPartition

from frontend.exchange.exchange import Exchange, Limits
from frontend.exchange.front_end import FrontEnd
from frontend.exchange.pending_table import PendingTable
from frontend.exchange.streams import StreamIntake
from frontend.problems import Problem, ProblemError
from frontend.topics.recorded import RecordedReplies
from railgun.catalog.catalog import Catalog
from railgun.catalog.definitions import parse_definitions
from railgun.ingest.replies import Reply
from railgun.messaging.errors import TransportUnavailableError
from railgun.messaging.transport import TopicPartition
from railgun.registry import evolution
from railgun.registry.kafka_registry import KafkaRegistry
from tests.frontend.conftest import PAYMENTS
from tests.frontend.kafka.cluster import LocalCluster, RunningFrontEnd, define
from tests.frontend.serving import PATIENCE_S, until
from tests.unit.local_units import quick_settings

Event = Callable[..., dict[str, Any]]
EVENTS = "/v1/streams/payments/events"


@pytest.fixture(scope="module")
def cluster(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """With payments, one unit, and no front-end."""
    with LocalCluster(kafka, tmp_path_factory.mktemp("cluster")) as made:
        with KafkaRegistry(quick_settings(kafka), made.prefix) as registry:
            registry.change(lambda catalog: evolution.missing(catalog, parse_definitions(PAYMENTS)))
        made.start_units(1)
        yield made


class Party:
    """An exchange that knows the streams, and an intake for each."""

    def __init__(self, cluster: LocalCluster, name: str, limits: Limits | None = None) -> None:
        self._registry = KafkaRegistry(quick_settings(cluster.broker), cluster.prefix)
        self.catalog = self._registry.snapshot().catalog
        self.front_end = FrontEnd(name)
        self.exchange = Exchange(
            quick_settings(cluster.broker), self._registry.topics, self.front_end, limits or Limits()
        )
        self.exchange.know(self.catalog)
        self._intake_of = StreamIntake(self.catalog.streams["payments"])

    def __enter__(self) -> "Party":
        return self

    def __exit__(self, *raised: object) -> None:
        self.exchange.close()
        self._registry.close()

    def submit(
        self, events: list[dict[str, Any]], timeout_ms: int = 60_000, positions: Any = None
    ) -> list[Reply | Problem]:
        return self.exchange.submit("payments", self.take(events), positions, timeout_ms).result(PATIENCE_S)

    def take(self, events: list[dict[str, Any]]) -> Any:
        return self._intake_of.take(
            [msgspec.json.encode(each) for each in events], time.time_ns() // 1_000_000
        )


def test_answers_are_merged_in_order(cluster: LocalCluster, event: Event) -> None:
    card = event()["card"]
    with Party(cluster, "merging") as party:
        for count in (1, 3, 200):
            sent = [event(card=card) for _ in range(count)]
            replies = party.submit(sent)
            assert [each.id for each in replies] == [each["tx_id"] for each in sent]
            assert all(isinstance(each, Reply) for each in replies)
        counts = [each.metrics.m0 for each in party.submit([event(card=card)]) if isinstance(each, Reply)]
        assert counts == [205]


def test_an_event_without_its_partitioner_has_nulls_there(cluster: LocalCluster, event: Event) -> None:
    with Party(cluster, "nulls") as party:
        (first, second) = party.submit([event(card=None), event()])
        assert isinstance(first, Reply)
        assert isinstance(second, Reply)
        assert first.metrics.m0 is None
        assert first.metrics.m4 >= 1
        assert second.metrics.m0 == 1
        assert second.metrics.m4 == first.metrics.m4 + 1


def test_an_input_position_given_again_gets_the_first_reply(cluster: LocalCluster, event: Event) -> None:
    with Party(cluster, "positions") as party:
        sent = [event(), event()]
        positions = [(0, 10, 10), (0, 11, 10)]
        first = party.submit(sent, positions=positions)
        party.submit([event(card=sent[0]["card"])], positions=[(0, 12, 10)])
        assert party.submit(sent, positions=positions) == first


def test_replies_to_an_older_run_and_repeats_are_dropped(cluster: LocalCluster, event: Event) -> None:
    with Party(cluster, "again") as older:
        older.submit([event()])
        topic = older.exchange.topics.replies(older.front_end.number)
        transport = older.exchange._transport
        records = transport.read(topic, 0, 0, 100, 1 << 20).values()
        with Party(cluster, "again") as party:
            assert party.front_end.incarnation > older.front_end.incarnation
            party.exchange._transport.append(topic, 0, [*records, b"nonsense"])
            until(lambda: party.exchange.pending_table.counts["unreadable"] == 1)
            assert party.exchange.pending_table.counts["older"] == 2
            party.submit([event()])
            assert party.exchange.pending_table.counts["answers"] == 2
            own = transport.read(topic, 0, len(records) + 1, 100, 1 << 20).values()
            transport.append(topic, 0, own)
            until(lambda: party.exchange.pending_table.counts["late"] == 2)
            assert party.exchange.pending_table.events == 0


def test_what_waits_hears_at_once_that_its_stream_was_dropped(
    kafka: str, tmp_path: Path, event: Event
) -> None:
    with LocalCluster(kafka, tmp_path) as cluster:
        with KafkaRegistry(quick_settings(kafka), cluster.prefix) as registry:
            registry.change(lambda catalog: evolution.missing(catalog, parse_definitions(PAYMENTS)))
        with Party(cluster, "dropped") as party:
            catalog, made_anew, nothing = party.catalog, party.catalog.copy(), Catalog()
            for name, entry in made_anew.streams.items():
                made_anew.streams[name] = replace(entry, created=entry.created + 1)
            for after in (nothing, made_anew):
                party.exchange.know(catalog)
                sent = [event(), event()]
                waits = party.exchange.submit("payments", party.take(sent), None, 3_600_000)
                party.exchange.know(catalog)
                assert party.exchange.pending_table.events == 2
                party.exchange.know(after)
                said = [(each.status, each.id) for each in waits.result(60) if isinstance(each, Problem)]
                assert said == [(404, each["tx_id"]) for each in sent]
                assert party.exchange.pending_table.events == 0
            party.exchange.know(nothing)
            with pytest.raises(ProblemError) as refused:
                party.submit([event()])
            assert refused.value.problem.status == 404


def test_a_unit_that_stands_still(kafka: str, tmp_path: Path, event: Event) -> None:
    """Timeouts name who is missing; what waits is bounded, refused beyond that, and answered in the end."""
    with LocalCluster(kafka, tmp_path) as cluster:
        with KafkaRegistry(quick_settings(kafka), cluster.prefix) as registry:
            registry.change(lambda catalog: evolution.missing(catalog, parse_definitions(PAYMENTS)))
        with Party(cluster, "stuck", Limits(events=10)) as party:
            sent = [event(), event(card=None)]
            missing = party.submit(sent, timeout_ms=50)
            assert [(each.id, each.partitioners) for each in missing if isinstance(each, Problem)] == [
                (sent[0]["tx_id"], ("card", "*")),
                (sent[1]["tx_id"], ("*",)),
            ]
            assert party.exchange.pending_table.events == 0
            future = party.exchange.submit("payments", party.take([event() for _ in range(10)]), None, 60_000)
            with pytest.raises(ProblemError) as refused:
                party.exchange.submit("payments", party.take([event()]), None, 60_000)
            assert refused.value.problem.status == 503
            assert dict(refused.value.headers)[b"retry-after"] == b"1"
            cluster.start_units(1)
            assert all(isinstance(each, Reply) for each in future.result(PATIENCE_S))
            assert party.exchange.pending_table.events == party.exchange.pending_table.size_bytes == 0
            assert party.exchange.pending_table.counts["late"] == 3


def test_the_door_says_503_while_units_stand_still_and_answers_afterwards(
    kafka: str, tmp_path: Path, event: Event
) -> None:
    with LocalCluster(kafka, tmp_path) as cluster:
        served = cluster.serve(limits=Limits(events=20))
        define(served.client, PAYMENTS)
        waiting = _waiting(served)
        with ThreadPoolExecutor(1) as pool:
            full = pool.submit(served.post, EVENTS, [event() for _ in range(20)])
            until(lambda: waiting.events == 20)
            refused = served.post(EVENTS, event())
            assert refused.status_code == 503
            assert refused.headers["retry-after"] == "1"
            assert "wait for answers" in refused.json()["detail"]
            text = served.client.get("/metrics").text
            assert "railgun_pending_events 20.0" in text
            assert 'railgun_replies_total{outcome="answers"}' in text
            cluster.start_units(1)
            answers = full.result(PATIENCE_S).json()
        assert [each["metrics"]["everyone"] for each in answers] == list(range(1, 21))
        assert waiting.events == 0


def test_receipts_without_replies_wait_for_no_unit(kafka: str, tmp_path: Path, event: Event) -> None:
    with LocalCluster(kafka, tmp_path) as cluster:
        served = cluster.serve()
        define(served.client, PAYMENTS)
        response = served.post(EVENTS + "?reply=none", [event(), 5, event()])
        assert response.status_code == 202
        assert (response.json()["accepted"], response.json()["refused"]) == (2, 1)
        cluster.start_units(1)
        assert served.score("payments", event())["metrics"]["everyone"] == 3


def test_what_may_have_been_taken_names_no_time_to_send_it_again(
    kafka: str, tmp_path: Path, event: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events that the broker did not confirm, replies that were not recorded: a client would count them twice."""
    error = TransportUnavailableError(kafka, "no answer", "start the broker")

    def unconfirmed(*_: object) -> "Future[list[int]]":
        future: Future[list[int]] = Future()
        future.set_exception(error)
        return future

    def unrecorded(*_: object) -> None:
        raise error

    with LocalCluster(kafka, tmp_path) as cluster:
        served = cluster.serve()
        define(served.client, PAYMENTS)
        cluster.start_units(1)
        for replaced, failing, parameters in (
            ((Exchange, "publish"), unconfirmed, "?reply=none"),
            ((RecordedReplies, "record"), unconfirmed, ""),
            ((RecordedReplies, "record"), unrecorded, ""),
        ):
            with monkeypatch.context() as patch:
                patch.setattr(*replaced, failing)
                answer = served.post(EVENTS + parameters, event())
            assert answer.status_code == 503
            assert "no answer" in answer.json()["detail"]
            assert "sending" in answer.json()["detail"]
            assert "retry-after" not in answer.headers
        assert served.score("payments", event())["metrics"]["everyone"] == 3


def test_records_have_the_key_of_their_partitioner(cluster: LocalCluster, event: Event) -> None:
    sent = [event() for _ in range(70)]
    with Party(cluster, "keys") as party:
        where = TopicPartition(party.exchange.topics.tasks("payments", "card"), 0)
        start = party.exchange._transport.end_offset(*where)
        party.submit(sent)
        party.submit([sent[0]])
    consumer = Consumer({"bootstrap.servers": cluster.broker, "group.id": "keys"})
    try:
        consumer.assign([KafkaTopicPartition(*where, start)])
        keys = [message.key() for message in consumer.consume(71, PATIENCE_S)]
    finally:
        consumer.close()
    assert keys == [each["card"].encode() for each in (*sent, sent[0])]


def _waiting(served: RunningFrontEnd) -> PendingTable:
    exchange = served.backend.exchange
    assert exchange is not None
    return exchange.pending_table
