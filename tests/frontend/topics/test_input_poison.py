"""Poison in the input topic: it has letters with reasons, or is skipped, and good events are answered as without it."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.frontend.conftest import PAYMENTS
from tests.frontend.kafka.cluster import LocalCluster
from tests.frontend.topics.input_topic import InputTopic, headers_of
from tests.frontend.topics.test_input_topic import define

Event = Callable[..., dict[str, Any]]
Chosen = random.Random


def _text(event: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({**event, **more}).encode()


# Each makes a record that is none of this stream's events, of one that is. One without a value is skipped.
POISON: tuple[Callable[[Chosen, dict[str, Any]], bytes | None], ...] = (
    lambda chosen, event: None,
    lambda chosen, event: b"",
    lambda chosen, event: chosen.randbytes(chosen.randrange(1, 400)),
    lambda chosen, event: b"\0" + chosen.randbytes(chosen.randrange(0, 60)),
    lambda chosen, event: _text(event).replace(b'"card": "', b'"card": "\xff\xfe'),
    lambda chosen, event: _text(event)[: chosen.randrange(1, 20)],
    lambda chosen, event: _text(event) + b"}",
    lambda chosen, event: _text(event, n=2**63),
    lambda chosen, event: _text(event, n=10 ** chosen.randrange(20, 4_000)),
    lambda chosen, event: _text(event, n=1.5),
    lambda chosen, event: _text(event, amount=chosen.choice([True, "1", [1], {}])),
    lambda chosen, event: _text(event).replace(b"1.5", b"NaN"),
    lambda chosen, event: _text(event).replace(b"1.5", b"1e999"),
    lambda chosen, event: _text(event, ts="9999-12-31T23:59:59Z"),
    lambda chosen, event: _text(event, ts=chosen.choice([None, "yesterday", 2**62, -(2**63)])),
    lambda chosen, event: _text(event, tx_id=chosen.choice([None, 7, ["t"]])),
    lambda chosen, event: _text(event, card="\ud800"),
    lambda chosen, event: _text(event, price=chosen.choice([0.001, "1.005", "x", "1e3", 10**9])),
    lambda chosen, event: b'{"a":' * chosen.randrange(2_000, 60_000),
    lambda chosen, event: json.dumps([event]).encode(),
    lambda chosen, event: _text(event, card="c" * 17_000_000) if not chosen.randrange(20) else b"[]",
)


def play(kafka: str, folder: Path, event: Event, seed: int, poison: int) -> None:
    chosen = random.Random(seed)
    with (
        LocalCluster(kafka, folder) as cluster,
        InputTopic(kafka, cluster.prefix, "payments") as topic,
    ):
        define(cluster, PAYMENTS)
        cluster.start_units(1)
        cluster.serve()
        good: list[dict[str, Any]] = []
        bad: list[tuple[int, bytes]] = []
        for number in range(poison):
            body = POISON[number % len(POISON)](chosen, event(card=f"c{chosen.randrange(5)}"))
            if body is not None and len(body) > 16_900_000:
                continue
            events = [event(card=f"c{chosen.randrange(5)}") for _ in range(chosen.randrange(4))]
            good += events
            offsets = topic.send([body, *events], key=chosen.choice([None, b"", b"k"]))
            if body is not None:
                bad.append((offsets[0], body))
        counts: dict[str, int] = {}
        for one, reply in zip(good, topic.await_replies(len(good)), strict=True):
            counts[one["card"]] = counts.get(one["card"], 0) + 1
            assert (reply["id"], reply["metrics"]["n7"]) == (one["tx_id"], counts[one["card"]])
        letters = topic.await_letters(len(bad))
        assert [(int(headers_of(each)["offset"]), each.value()) for each in letters] == bad
        assert all(headers_of(each)["reason"] for each in letters)


@pytest.mark.timeout(300)
def test_poison(kafka: str, tmp_path: Path, event: Event) -> None:
    play(kafka, tmp_path, event, 1, 200)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(10))
def test_much_poison(kafka: str, tmp_path: Path, event: Event, seed: int) -> None:
    play(kafka, tmp_path, event, 100 + seed, 1_000)
