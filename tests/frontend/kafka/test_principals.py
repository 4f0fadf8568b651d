"""A cluster on a broker with SASL and ACLs: each role has a principal of its own, and no right that it does not use."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from railgun.catalog.definitions import parse_definitions
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import TopicSettings
from railgun.registry import evolution
from railgun.registry.kafka_registry import KafkaRegistry
from railgun.spark.tables.source import RailgunSource
from tests.broker.secured_broker import passed
from tests.frontend.conftest import PAYMENTS
from tests.frontend.kafka.secured_cluster import STARTS_S, Secured, password
from tests.frontend.serving import until
from tests.proc import command_lines

STREAM = "payments"
NAMED = {"topic": "prod.scored", "dead": "prod.rejected"}
ROLES = {
    "frontend": [STREAM, "--output", NAMED["topic"], "--dead", NAMED["dead"]],
    "node": [],
    "spark": [],
    "backfill": [],
    "client": [STREAM],
}
EVENTS = f"/v1/streams/{STREAM}/events"
_OTHER = '[streams.other]\npartitioners = ["card"]\n[streams.other.fields]\ncard = "string"\n'
_NOT_ITS_OWN = "client"


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    found = Secured(tmp_path, ROLES)
    try:
        yield found
    finally:
        found.close()


@pytest.fixture
def http(secured: Secured) -> Iterator[httpx.Client]:
    with httpx.Client(timeout=STARTS_S, trust_env=False) as client:
        yield client


def _event(number: int) -> dict[str, Any]:
    return {"tx_id": f"t{number}", "ts": 1_700_000_000_000 + number, "card": f"c{number % 3}", "amount": 1.5}


def _score(http: httpx.Client, numbers: range) -> None:
    """Each is answered, and counts once."""
    for number in numbers:
        answer = http.post(f"{EVENTS}?timeout_ms=60000", json=_event(number))
        assert answer.status_code == 200, answer.text
        assert answer.json()["metrics"]["everyone"] == number + 1


class InputClient:
    """A program that writes events to a stream's topic, and reads its replies."""

    def __init__(self, secured: Secured) -> None:
        self._own = {"bootstrap.servers": secured.broker.guarded, **passed("client", password("client"))}
        self._topics, self._refused = secured.topics, list[Any]()
        self._producer = Producer(self._own)
        self._consumer = Consumer(
            {**self._own, "group.id": secured.topics.output(STREAM), "auto.offset.reset": "earliest"}
        )
        self._consumer.subscribe([secured.topics.output(STREAM)])

    def send(self, body: bytes, topic: str = "") -> None:
        """Write an event. Raises KafkaException where that is refused."""
        self._refused.clear()
        self._producer.produce(
            topic or self._topics.input(STREAM),
            body,
            on_delivery=lambda error, _: self._refused.append(error),
        )
        self._producer.flush(30)
        for error in self._refused:
            if error is not None:
                raise KafkaException(error)

    def reply(self) -> Any:
        """The next one."""
        message = self._consumer.poll(60)
        assert message is not None
        assert message.error() is None, message.error()
        return json.loads(message.value() or b"")

    def reading(self, topic: str) -> str:
        """Why it cannot read a topic."""
        consumer = Consumer({**self._own, "group.id": self._topics.output(STREAM)})
        try:
            consumer.subscribe([topic])
            message = consumer.poll(60)
            assert message is not None
            return str(message.error())
        finally:
            consumer.close()

    def close(self) -> None:
        self._consumer.close()


def _through_topics(secured: Secured, http: httpx.Client, numbers: range) -> None:
    """Events and replies through topics, and something that is no event."""
    client = InputClient(secured)
    try:
        client.send(b"no event")
        for number in numbers:
            client.send(json.dumps(_event(number)).encode())
            assert client.reply()["metrics"]["everyone"] == number + 1
    finally:
        client.close()


def _to_named_topics(secured: Secured, http: httpx.Client, number: int) -> None:
    """A reply and a letter in topics with names of their own, which a front-end makes; then it is as before."""
    changed = http.patch(f"/v1/streams/{STREAM}", json={"output": NAMED})
    assert changed.status_code == 200, changed.text
    client = InputClient(secured)
    try:
        with KafkaTransport(KafkaSettings(secured.broker.open_address)) as log:
            until(lambda: {*NAMED.values()} <= log.topics().keys())
            client.send(b"no event")
            client.send(json.dumps(_event(number)).encode())
            until(lambda: all(log.end_offset(topic, 0) > 0 for topic in NAMED.values()))
            (reply,) = log.read(NAMED["topic"], 0, 0, 1, 1 << 20).values()
            assert json.loads(reply)["metrics"]["everyone"] == number + 1
        read = http.get(f"/v1/streams/{STREAM}/dead")
        assert NAMED["dead"] in [each["topic"] for each in read.json()["letters"]], read.text
    finally:
        client.close()
    assert http.patch(f"/v1/streams/{STREAM}", json={"output": None}).status_code == 200


def _what_clients_may_not(secured: Secured) -> None:
    client, topics = InputClient(secured), secured.topics
    for topic in (topics.tasks(STREAM, "card"), topics.catalog, topics.output(STREAM), topics.assignment):
        with pytest.raises(KafkaException, match="authorization failed"):
            client.send(b"forged", topic)
    # While a member of the group does not poll no other one is told anything.
    client.close()
    for topic in (topics.tasks(STREAM, "card"), topics.catalog, topics.input(STREAM)):
        assert "TOPIC_AUTHORIZATION_FAILED" in client.reading(topic)


def _unreadable_record(secured: Secured) -> None:
    """Put a record into a task's log that no front-end writes; a unit writes it to the topic of dead letters."""
    with KafkaTransport(KafkaSettings(secured.broker.open_address)) as log:
        log.append(secured.topics.tasks(STREAM, "card"), 0, [b"\xc1"])
        until(lambda: secured.topics.dead(STREAM) in log.topics())


def _as_spark(secured: Secured) -> None:
    options = {f"kafka.{key}": str(value) for key, value in secured.settings("spark").pass_through.items()}
    source = RailgunSource(
        {"broker": secured.broker.guarded, "stream": STREAM, "partitioner": "card", **options}
    )
    reader = source.reader(source.schema())
    assert sum(batch.num_rows for each in reader.partitions() for batch in reader.read(each)) > 0


def _as_backfill(secured: Secured) -> None:
    with KafkaRegistry(secured.settings("backfill"), secured.topics.prefix) as registry:
        registry.change(lambda catalog: evolution.missing(catalog, parse_definitions(_OTHER)))


def _drop_other(secured: Secured, http: httpx.Client) -> None:
    """What is left of a dropped stream is removed by whoever looks: a node, as the front-end is stopped at once."""
    until(lambda: "other" in http.get("/v1/streams").text)
    assert http.delete("/v1/streams/other").status_code == 204
    secured.end("f2")
    topic = secured.topics.tasks("other", "card")
    with KafkaTransport(KafkaSettings(secured.broker.open_address)) as log:
        until(lambda: topic not in log.topics())


def _errors(http: httpx.Client) -> list[httpx.Response]:
    """Answers to what cannot be done."""
    json_type = {"Content-Type": "application/json"}
    found = [
        http.get("/v1/streams/none"),
        http.post(EVENTS, content=b"{", headers=json_type),
        http.post(EVENTS, json={"tx_id": 1}),
        http.post(f"/v1/streams/{STREAM}/deepening", json={}),
    ]
    assert [each.status_code for each in found] == [404, 400, 422, 409]
    return found


def _check_nothing_tells_passwords(secured: Secured, answers: list[httpx.Response], seen: str) -> None:
    said = [seen.encode()]
    said += [file.read_bytes() for file in secured.said] + [each.content for each in answers]
    said += [file.read_bytes() for file in secured.folder.glob("n*/**/*") if file.is_file()]
    assert b"ready" in b"".join(said)
    for role in ROLES:
        assert not any(password(role).encode() in each for each in said), role


@pytest.mark.timeout(600)
def test_each_role_does_its_work_with_its_own_rights(secured: Secured, http: httpx.Client) -> None:
    topics = secured.topics
    with KafkaTransport(KafkaSettings(secured.broker.open_address)) as log:
        # The input topic is made by whoever runs the broker; the others are as an earlier release made them.
        log.create_topic(topics.input(STREAM), 1)
        for topic in (topics.positions, topics.nodes):
            log.create_topic(topic, 1, TopicSettings(is_compacted=True))
    definitions = secured.folder / "definitions.toml"
    definitions.write_text(PAYMENTS)
    for name in ("n1", "n2"):
        secured.start("node", name, "--units", "1", "--data", str(secured.folder / name))
    with KafkaTransport(KafkaSettings(secured.broker.open_address)) as log:
        # Whoever comes first makes the cluster's topics. This is the last of them.
        until(lambda: topics.leader in log.topics())
    secured.serve(http, "f1", "--definitions", str(definitions))
    kept = http.patch(f"/v1/streams/{STREAM}", json={"log_retention": "2h"})
    assert kept.status_code == 200, kept.text
    _score(http, range(20))
    _through_topics(secured, http, range(20, 24))
    _to_named_topics(secured, http, 24)
    values = http.get(f"/v1/streams/{STREAM}/values?card=c1").json()
    assert values["metrics"]["everyone"] == 25
    answers = [http.get(path) for path in ("/metrics", "/v1/status", "/v1/cluster", "/readyz", "/v1/log")]
    assert [each.status_code for each in answers] == [200] * len(answers)
    answers += _errors(http)
    _what_clients_may_not(secured)
    _unreadable_record(secured)
    _as_spark(secured)
    # Whoever leads is killed, and another front-end comes, which writes in transactions.
    leader = answers[2].json()["leader"]
    secured.processes[leader].kill()
    secured.processes.pop(leader).wait()
    _score(http, range(25, 45))
    secured.end("f1")
    secured.serve(http, "f2", more="[input]\ntransactional = true\n")
    _through_topics(secured, http, range(45, 50))
    secured.start("node", leader, "--units", "1", "--data", str(secured.folder / leader))
    _as_backfill(secured)
    _drop_other(secured, http)
    # A unit that is asked to end while it is only starting does not end well.
    until(lambda: b"\nready\n" in secured.said[-1].read_bytes())
    seen = "".join(command_lines(each.pid) for each in secured.processes.values())
    assert "railgun.unit" in seen
    for name in list(secured.processes):
        secured.end(name)
    secured.check_used()
    for role in ROLES.keys() - {_NOT_ITS_OWN}:
        assert not secured.denied(role), role
    _check_nothing_tells_passwords(secured, answers, seen)
