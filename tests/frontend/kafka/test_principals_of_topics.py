"""A front-end and a node whose stream has topics that somebody else named, with the rights that the script grants."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, Message, Producer

from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from tests.broker.secured_broker import passed
from tests.frontend.conftest import PAYMENTS
from tests.frontend.kafka.secured_cluster import STARTS_S, Secured, password
from tests.frontend.serving import PATIENCE_S, until
from tests.frontend.topics.input_topic import headers_of

INPUT, OUTPUT, DEAD = "prod.payments", "prod.scored", "prod.rejected"
OUT = ["payments", "--output", OUTPUT, "--dead", DEAD]
DEFINITIONS = f"""{PAYMENTS}
[streams.payments.input]
topics = ["{INPUT}"]
[streams.payments.output]
topic = "{OUTPUT}"
dead = "{DEAD}"
key = "input"
include = ["card"]
"""
_CLIENT = ["--input", INPUT, "--output", OUTPUT, "--dead", DEAD]
_AT_MS, _SEVERAL_LOOKS_S = 1_700_000_000_000, 2.0


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    found = Secured(tmp_path, {"frontend": OUT, "node": [], "client": _CLIENT})
    try:
        yield found
    finally:
        found.close()


def _client_of(secured: Secured) -> dict[str, Any]:
    return {"bootstrap.servers": secured.broker.guarded, **passed("client", password("client"))}


def event(number: int) -> dict[str, Any]:
    own = {"tx_id": f"t{number}", "ts": _AT_MS + number, "card": f"c{number % 2}"}
    return {**own, "amount": 1.5, "n": number, "price": "0.10"}


def reply(number: int) -> dict[str, Any]:
    """The reply to an event, whose card has had each second one up to it."""
    of_card = range(number % 2, number + 1, 2)
    metrics = {"n7": len(of_card), "s7": 1.5 * len(of_card), "l7": sum(of_card)}
    metrics |= {"p7": f"{len(of_card) / 10:.2f}", "everyone": number + 1}
    of_event = {"id": f"t{number}", "time": _AT_MS + number, "metrics": metrics}
    return {**of_event, "fields": {"card": f"c{number % 2}"}}


def send(secured: Secured, values: list[bytes | None]) -> None:
    """Write records, each with its number as key."""
    refused: list[Any] = []
    producer = Producer(_client_of(secured))
    for number, value in enumerate(values):
        producer.produce(
            INPUT, value, b"%d" % number, on_delivery=lambda error, _: error and refused.append(error)
        )
    assert (producer.flush(PATIENCE_S), refused) == (0, [])


def read(secured: Secured, topic: str, count: int) -> list[Message]:
    """So many records of a topic, once it has them."""
    own = {"group.id": topic, "auto.offset.reset": "earliest"}
    consumer, found = Consumer({**_client_of(secured), **own}), list[Message]()
    try:
        consumer.subscribe([topic])
        deadline_s = time.monotonic() + PATIENCE_S
        while len(found) < count:
            assert time.monotonic() < deadline_s, f"{topic} has {len(found)}"
            message = consumer.poll(0.1)
            if message is not None:
                assert message.error() is None, message.error()
                found.append(message)
    finally:
        consumer.close()
    return found


def why_unread(said: Path) -> list[str]:
    return [line for line in said.read_text(encoding="utf-8").splitlines() if "is not read" in line]


@pytest.mark.timeout(400)
def test_named_topics_by_the_rights_of_the_script(secured: Secured) -> None:
    with KafkaTransport(KafkaSettings(secured.broker.open_address)) as log:
        log.create_topic(INPUT, 1)
        secured.start("node", "n1", "--units", "1", "--data", str(secured.folder / "n1"))
        until(lambda: secured.topics.leader in log.topics())
    definitions = secured.folder / "definitions.toml"
    definitions.write_text(DEFINITIONS, encoding="utf-8")
    with httpx.Client(timeout=STARTS_S, trust_env=False) as http:
        said = secured.serve(
            http, "f1", "--definitions", str(definitions), more="[input]\ntransactional = true\n"
        )
    values = [json.dumps(event(number)).encode() for number in range(9)]
    send(secured, [*values, b"no event", None])

    # Without --input.
    until(lambda: bool(why_unread(said)))
    time.sleep(_SEVERAL_LOOKS_S)
    (line,) = why_unread(said)
    assert f"payments: the topic {INPUT} is not read: " in line
    assert "Give this user the right Read on the topic; docs/kafka.md lists what each role needs" in line
    assert {right.name for right in secured.denied("frontend")} == {INPUT}

    secured.grant("frontend", [*OUT, "--input", INPUT])
    with KafkaTransport(KafkaSettings(secured.broker.open_address)) as log:
        # The front-end makes them.
        until(lambda: {OUTPUT, DEAD} <= log.topics().keys())
    replies = read(secured, OUTPUT, len(values))
    assert [json.loads(each.value() or b"") for each in replies] == [reply(n) for n in range(len(values))]
    assert [each.key() for each in replies] == [b"%d" % number for number in range(len(values))]
    places = [{"topic": INPUT, "partition": "0", "offset": str(n)} for n in range(len(values))]
    assert [headers_of(each) for each in replies] == places
    (letter,) = read(secured, DEAD, 1)
    assert (letter.key(), letter.value(), headers_of(letter)["offset"]) == (b"9", b"no event", "9")
    for name in ("f1", "n1"):
        secured.end(name)
    secured.check_used("prod.")
    assert {right.name for right in secured.denied("frontend")} == {INPUT}
    assert not secured.denied("node")
