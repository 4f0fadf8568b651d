"""Late events that their stream discards: each has a letter beside its reply, once with transactions."""

import json
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from frontend.topics import windows
from frontend.topics.late_letters import late_letters
from railgun.ingest.replies import Reply
from tests.frontend.kafka.cluster import LocalCluster
from tests.frontend.serving import until
from tests.frontend.topics.from_task_logs import Expected
from tests.frontend.topics.input_topic import InputTopic, headers_of
from tests.frontend.topics.test_input_crashes import (
    INPUT_PARTITIONS,
    FrontEndProcess,
    Traffic,
    await_committed,
    check,
    place_of,
)
from tests.frontend.topics.test_input_topic import define

DEFINITIONS = """
[streams.s]
id = "id"
time = "ts"
partitioners = ["card", "shop"]
lateness = "1s"
late_policy = "discard"
[streams.s.fields]
id = "string"
ts = "timestamp"
card = "string"
shop = "string"
[[metrics]]
sql = "SELECT count(*) AS n FROM s GROUP BY card OVER INFINITE"
"""
AT_MS = 1_751_000_000_000


def event(number: int, at_s: float, card: str | None = "c", shop: str = "s") -> dict[str, Any]:
    return {"id": f"e{number}", "ts": AT_MS + int(1000 * at_s), "card": card, "shop": shop}


def test_discarded_events_have_letters(kafka: str, tmp_path: Path) -> None:
    with LocalCluster(kafka, tmp_path) as cluster, InputTopic(kafka, cluster.prefix, "s") as topic:
        define(cluster, DEFINITIONS)
        cluster.start_units(1)
        served = cluster.serve()
        sent: list[Any] = [
            event(0, 100),
            event(1, 98),  # late everywhere
            event(2, 98, card=None),  # late at the only one that gets it
            b"no event",
            event(3, 99.5),
            event(4, 98.5, card="another", shop="another"),
            event(5, 90),
        ]
        topic.send(sent, key=b"k")
        replies, letters = topic.await_replies(6), topic.await_letters(5)
        assert [each.get("late") for each in replies] == [
            None,
            {"card": "discarded", "shop": "discarded"},
            {"shop": "discarded"},
            None,
            {"card": "discarded", "shop": "discarded"},
            {"card": "discarded", "shop": "discarded"},
        ]
        assert [place_of(each) for each in topic.written] == [(0, offset) for offset in (0, 1, 2, 4, 5, 6)]
        by_offset = {place_of(each)[1]: each for each in letters}
        assert sorted(by_offset) == [1, 2, 3, 5, 6]
        late = [headers_of(by_offset[each]).get("late") for each in (1, 2, 3, 5, 6)]
        assert late == ["card,shop", "shop", None, "card,shop", "card,shop"]
        assert headers_of(by_offset[1])["reason"] == "it is late, and was discarded by card, shop"
        for offset in (1, 2, 5, 6):
            assert by_offset[offset].value() == json.dumps(sent[offset]).encode()
            assert by_offset[offset].key() == b"k"
            assert headers_of(by_offset[offset])["topic"] == topic.input
            assert int(headers_of(by_offset[offset])["time"]) > 0
        # They are no records that could not be used.
        until(lambda: 'railgun_dead_letters_total{stream="s"} 1.0' in served.client.get("/metrics").text)
        # Events by HTTP have replies alone.
        assert served.score("s", event(7, 10))["late"] == {"card": "discarded", "shop": "discarded"}
        topic.send([event(8, 100)])
        topic.await_replies(7)
        topic.read_all()
        assert len(topic.letters) == 5


def test_rewritten_events_have_none(kafka: str, tmp_path: Path) -> None:
    with LocalCluster(kafka, tmp_path) as cluster, InputTopic(kafka, cluster.prefix, "s") as topic:
        define(cluster, DEFINITIONS.replace('"discard"', '"rewrite"'))
        cluster.start_units(1)
        cluster.serve()
        topic.send([event(0, 100), event(1, 98), b"no event"])
        assert topic.await_replies(2)[1]["late"] == {"card": "rewritten", "shop": "rewritten"}
        assert [place_of(each) for each in topic.await_letters(1)] == [(0, 2)]


def test_the_partitioners_that_discarded_it_alone_are_named() -> None:
    def message(number: int) -> Any:
        said = {"value": b"v", "key": None, "topic": "t", "partition": 0, "offset": number}
        return SimpleNamespace(**{name: partial(lambda each: each, each) for name, each in said.items()})

    replies = [
        Reply("a", 1, None),
        Reply("b", 1, None, {"card": "rewritten"}),
        Reply("c", 1, None, {"card": "rewritten", "shop": "discarded"}),
    ]
    (letter,) = late_letters([message(each) for each in range(3)], "payments", replies)
    said = dict(letter.headers)
    assert (said["late"], said["offset"], letter.value) == (b"shop", b"2", b"v")


def test_no_more_is_read_than_may_be_held(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "HELD_LIMIT_BYTES", 50_000)
    with LocalCluster(kafka, tmp_path) as cluster, InputTopic(kafka, cluster.prefix, "s") as topic:
        define(cluster, DEFINITIONS)
        served = cluster.serve()
        inputs = served.backend.inputs
        assert inputs is not None
        until(lambda: "s" in inputs.running and inputs.running["s"].windows.all() != [])
        held = inputs.running["s"].windows
        # No unit runs, so nothing is answered. Their times are close, as the partition may be behind.
        for number in range(20):
            topic.send([{**event(number, number / 100), "more": "x" * 10_000}])
            # One poll takes all that has come.
            until(lambda number=number: held.events > number or held.held_bytes >= 50_000)
        until(lambda: held.held_bytes >= 50_000)
        time.sleep(1.0)
        assert 50_000 <= held.held_bytes < 70_000
        assert held.events < 8
        cluster.start_units(1)
        topic.await_replies(20)
        until(lambda: (held.held_bytes, held.events) == (0, 0))


def _mixed(seed: int, count: int) -> list[dict[str, Any]]:
    """Events of which many come late at one of their partitioners or both."""
    chosen: Callable[..., Any] = random.Random(seed).choice
    return [
        event(
            n, n / 20 - chosen((0, 0, 0, 0.5, 2, 5)), chosen((None, "c1", "c2", "c3")), f"s{chosen(range(3))}"
        )
        for n in range(count)
    ]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("transactional", [True, False])
def test_letters_through_a_front_end_that_is_killed(kafka: str, tmp_path: Path, transactional: bool) -> None:
    """A second one, which is killed while it has some of the partitions, and then another; to named topics."""
    definitions = DEFINITIONS.replace("lateness", "partitions = 2\nlateness", 1)
    left, sent = _mixed(7, 600), dict[tuple[int, int], dict[str, Any]]()
    with LocalCluster(kafka, tmp_path) as cluster:
        scored, rejected = f"{cluster.prefix}-scored", f"{cluster.prefix}-rejected"
        output = f'[streams.s.output]\ntopic = "{scored}"\ndead = "{rejected}"\n'
        define(cluster, definitions.replace("[[metrics]]", output + "[[metrics]]", 1))
        cluster.start_units(2)
        with (
            InputTopic(kafka, cluster.prefix, "s", INPUT_PARTITIONS, out=scored, dead=rejected) as topic,
            FrontEndProcess(kafka, cluster.prefix, transactional=transactional),
        ):
            for number in range(2):
                with FrontEndProcess(kafka, cluster.prefix, transactional=transactional) as process:
                    process.await_partitions()
                    traffic = Traffic(topic, left[:300], 2.0, number)
                    left = left[300:]
                    time.sleep(1.0)
                    process.kill()
                    traffic.join()
                    sent |= traffic.sent
            await_committed(topic, sent)
            expected = Expected(kafka, cluster.prefix, definitions, sent)
            assert len(expected.discarded) > 50
            check(topic, expected, once=transactional)
            for letter in topic.letters:
                assert letter.value() == json.dumps(sent[place_of(letter)]).encode()
