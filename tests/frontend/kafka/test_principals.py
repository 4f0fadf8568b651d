"""A cluster on a broker with SASL and ACLs: each role has a principal of its own, and no right that it does not use."""

import json
import re
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
from railgun.registry.topics import Topics
from railgun.spark.tables.source import RailgunSource
from tests.broker.secured_broker import Right, SecuredBroker, passed, rights_of
from tests.forked import Forked
from tests.frontend.conftest import PAYMENTS
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
_STARTS_S, _STOPS_S = 200.0, 100.0
_AUDIT = "-Dorg.slf4j.simpleLogger.log.kafka.authorizer.logger=debug"
_AUDITED = re.compile(
    r"Principal = User:(\S+) is (Allowed|Denied) operation = (\S+) .* on resource = (\S+):LITERAL:(\S+) for request"
)
_OPERATIONS = {"DESCRIBE_CONFIGS": "DescribeConfigs", "ALTER_CONFIGS": "AlterConfigs"}
_NOT_ITS_OWN = "client"


def password(role: str) -> str:
    return f"pw-of-{role}-not-to-be-seen"


class Secured:
    """A cluster of processes, all that they say, and a network address for each role.

    said: the files with what the processes said.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.topics = folder, Topics("railgun")
        self.broker = SecuredBroker(folder / "broker", [_AUDIT])
        self.broker.begin()
        self.rights: dict[str, list[Right]] = {}
        for role, streams in ROLES.items():
            self.rights[role] = rights_of(role, self.topics.prefix, streams, folder / "acls")
            self.broker.add_user(role, password(role))
            self.broker.grant(role, self.rights[role])
        self.said: list[Path] = []
        self.processes: dict[str, Forked] = {}

    def start(self, role: str, name: str, *words: str, more: str = "") -> Forked:
        """Start one of the roles' processes."""
        config, said = self.folder / f"{name}.toml", self.folder / f"{name}.{len(self.said)}.log"
        own, called = passed(role, password(role)), "auto" if role == "frontend" else name
        config.write_text(
            f'[cluster]\nbroker = "{self.broker.guarded}"\nnode_name = "{called}"\nsession_timeout_s = "6s"\n'
            f'drop_grace_s = "2s"\n[logging]\nlevel = "debug"\n[engine]\ncheckpoint_interval_s = 0.5\n{more}[kafka]\n'
            + "".join(f"{key} = {json.dumps(value)}\n" for key, value in own.items())
        )
        self.said.append(said)
        with said.open("wb") as log:
            self.processes[name] = Forked(
                "railgun", [role, "--config", str(config), *words], stdout=log, stderr=log
            )
        return self.processes[name]

    def settings(self, role: str) -> KafkaSettings:
        return self.broker.settings(role, password(role))

    def end(self, name: str) -> None:
        process = self.processes.pop(name)
        process.terminate()
        assert process.wait(_STOPS_S) == 0

    def audited(self) -> dict[str, set[tuple[str, Right]]]:
        """What the broker has decided: for each principal ("Allowed" or "Denied", what it asked for)."""
        found: dict[str, set[tuple[str, Right]]] = {}
        text = (self.broker.folder / "broker.log").read_text(encoding="utf-8")
        for user, outcome, operation, resource, name in _AUDITED.findall(text):
            right = Right(
                _OPERATIONS.get(operation, operation.capitalize()),
                "transactional-id" if resource == "TransactionalId" else resource.lower(),
                name,
            )
            found.setdefault(user, set()).add((outcome, right))
        return found


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    found = Secured(tmp_path)
    try:
        yield found
    finally:
        for process in found.processes.values():
            process.kill()
            process.wait()
        found.broker.stop()


@pytest.fixture
def http(secured: Secured) -> Iterator[httpx.Client]:
    with httpx.Client(timeout=_STARTS_S, trust_env=False) as client:
        yield client


def _serve(secured: Secured, http: httpx.Client, name: str, *words: str, more: str = "") -> None:
    """Have a front-end, and the client ask it once it is ready."""
    before = len(secured.said)
    process = secured.start("frontend", name, "--http", "127.0.0.1:0", *words, more=more)

    def is_served() -> bool:
        assert process.poll() is None, secured.said[before].read_text()
        found = re.search(r'"url": ?"([^"]+)"', secured.said[before].read_text())
        if found is not None:
            http.base_url = found[1]
        return found is not None

    until(is_served)


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


def _check_rights(secured: Secured) -> None:
    """Each role has used each of its rights, and was denied nothing that it wanted."""
    audited = secured.audited()
    for role, rights in secured.rights.items():
        used = {right for outcome, right in audited[role] if outcome == "Allowed"}
        for right in rights:
            assert any(_is_of(each, right) for each in used), f"{role} never used {right}"
        denied = {right for outcome, right in audited[role] if outcome == "Denied"}
        assert not denied or role == _NOT_ITS_OWN, f"{role} was denied {denied}"


def _is_of(used: Right, granted: Right) -> bool:
    """Whether a right that was used is one that was granted."""
    if (used.operation, used.resource) != (granted.operation, granted.resource):
        return False
    is_prefixed = granted.name.endswith("*")
    return used.name.startswith(granted.name[:-1]) if is_prefixed else used.name == granted.name


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
    _serve(secured, http, "f1", "--definitions", str(definitions))
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
    _serve(secured, http, "f2", more="[input]\ntransactional = true\n")
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
    _check_rights(secured)
    _check_nothing_tells_passwords(secured, answers, seen)
