"""A backlog of several partitions, read by two front-ends with little lateness: no event becomes late."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.broker.own_topics import own_prefix
from tests.frontend.kafka.cluster import LocalCluster
from tests.frontend.topics.from_task_logs import Expected
from tests.frontend.topics.input_topic import InputTopic
from tests.frontend.topics.test_input_crashes import check
from tests.frontend.topics.test_input_topic import define
from tests.strategies.case import STREAM

_SPAN_MS, _BEGIN_MS = 300_000, 1_700_000_000_000
_DEFINITIONS = f"""
[streams.{STREAM}]
time = "ts"
id = "tx"
lateness = "5s"
partitioners = ["card", "shop"]
partitions = 2
[streams.{STREAM}.fields]
tx = "string"
ts = "timestamp"
card = "string"
shop = "long"
amount = "long"
[[metrics]]
sql = "SELECT count(*) AS n, sum(amount) AS spent FROM {STREAM} GROUP BY card OVER SLIDING 1 MINUTE"
[[metrics]]
sql = "SELECT count(*) AS n_shop FROM {STREAM} GROUP BY shop OVER INFINITE"
"""


def backlog(partitions: int, count: int, seed: int) -> dict[int, list[dict[str, Any]]]:
    """Events by partition, in order but for a second; half of the partitions have most of them."""
    chosen = random.Random(seed)
    made: dict[int, list[dict[str, Any]]] = {}
    for partition in range(partitions):
        own = count // partitions * (1 + 2 * (partition % 2)) // 2
        times = sorted(chosen.randrange(_SPAN_MS) for _ in range(own))
        made[partition] = [
            {
                "tx": f"{partition}-{number}",
                "ts": _BEGIN_MS + time_ms - chosen.randrange(1_000),
                "card": f"c{chosen.randrange(200)}",
                "shop": chosen.randrange(50),
                "amount": chosen.randrange(1_000),
            }
            for number, time_ms in enumerate(times)
        ]
    return made


def play(kafka: str, folder: Path, partitions: int, count: int) -> list[dict[str, Any]]:
    """Have a backlog read from the earliest on by two front-ends that begin together. Returns the replies."""
    with (
        LocalCluster(kafka, folder) as cluster,
        InputTopic(kafka, cluster.prefix, STREAM, partitions) as topic,
    ):
        sent: dict[tuple[int, int], Mapping[str, Any]] = {}
        for partition, events in backlog(partitions, count, 7).items():
            offsets = topic.send(events, partition)
            sent |= {(partition, offset): event for offset, event in zip(offsets, events, strict=True)}
        cluster.start_units(1)
        served = [cluster.serve(), cluster.serve()]
        # Both see the stream, with its metrics, within the same second, and begin with its topic.
        define(cluster, _DEFINITIONS)
        replies = topic.await_replies(len(sent), 240.0)
        check(topic, Expected(kafka, cluster.prefix, _DEFINITIONS, sent), once=False)
        read = [
            {each.where.partition for each in inputs.running[STREAM].windows.all()}
            for inputs in (each.backend.inputs for each in served)
            if inputs is not None
        ]
        assert read[0] | read[1] == set(range(partitions))
        assert all(read)
        return replies


def sparse(count: int, begin_ms: int) -> list[dict[str, Any]]:
    """Events an hour apart."""
    return [
        {"tx": f"{begin_ms}-{n}", "ts": begin_ms + n * 3_600_000, "card": "c", "shop": 1, "amount": 1}
        for n in range(count)
    ]


def test_sparse_events_and_old_ones_of_another_topic(kafka: str, tmp_path: Path) -> None:
    """A partition that is alone waits for nothing, however far apart its events are: 4,000 steps of an answer each
    would take minutes. Nor do live events wait for a topic whose events are years older, and late.
    """
    old = own_prefix("old")
    with (
        LocalCluster(kafka, tmp_path) as cluster,
        InputTopic(kafka, cluster.prefix, STREAM) as topic,
        InputTopic(kafka, cluster.prefix, STREAM, name=old) as history,
    ):
        cluster.start_units(1)
        topic.send(sparse(4_000, _BEGIN_MS))
        history.send(sparse(4_000, _BEGIN_MS // 2))
        served = cluster.serve()
        define(cluster, _DEFINITIONS)
        replies = topic.await_replies(4_000, 40.0)
        assert [each["metrics"]["n_shop"] for each in replies] == list(range(1, 4_001))
        changed = {"input": {"topics": [topic.input, old]}}
        assert served.client.patch(f"/v1/streams/{STREAM}", json=changed).status_code == 200
        topic.send(sparse(10, _BEGIN_MS + 4_001 * 3_600_000))
        replies = topic.await_replies(8_010, 40.0)
        late = {each["id"] for each in replies if "late" in each}
        assert late == {each["tx"] for each in sparse(4_000, _BEGIN_MS // 2)}


def test_no_event_of_a_backlog_becomes_late(kafka: str, tmp_path: Path) -> None:
    assert not [each for each in play(kafka, tmp_path, 4, 12_000) if "late" in each]


@pytest.mark.torture
def test_no_event_of_a_large_backlog_becomes_late(kafka: str, tmp_path: Path) -> None:
    assert not [each for each in play(kafka, tmp_path, 12, 60_000) if "late" in each]
