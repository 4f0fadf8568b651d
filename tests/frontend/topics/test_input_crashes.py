"""Front-ends killed and units crashed while events come by an input topic: never lost, never counted twice, and in a
transactional output each reply once."""

import json
import os
import random
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from railgun.broker.held_ports import held_port, number_of
from tests.forked import Forked
from tests.frontend.kafka.cluster import LocalCluster
from tests.frontend.topics.from_task_logs import Expected, Sent, canonical
from tests.frontend.topics.input_topic import InputTopic, headers_of
from tests.frontend.topics.test_input_topic import define
from tests.oracle.steps import Score
from tests.strategies.case import STREAM, Case, oracle
from tests.unit.local_units import awaited
from tests.unit.test_unit_against_oracle import spread_case

INPUT_PARTITIONS, UNITS = 4, 3
_SETTLES_S = 300.0


def timed_case(seed: int, size: int, *, is_computed: bool = False) -> Case:
    """Two partitioners of four partitions each; events have their times, so that replies can be foretold.

    is_computed: whether a partitioner is certainly a computed field.
    """
    for number in range(1_000):
        drawn = spread_case(seed * 100 + number, size)
        if "\ntime = " not in drawn.definitions:
            continue
        stream = oracle(drawn).stream
        if not is_computed or not stream.computed.keys().isdisjoint(stream.partitioners):
            return drawn
    raise AssertionError(seed)


class FrontEndProcess:
    """`railgun frontend`, which ends with the block at the latest."""

    def __init__(self, broker: str, prefix: str, *, transactional: bool) -> None:
        self._held = held_port()
        self._port = number_of(self._held)
        own = {name: value for name, value in os.environ.items() if "__" not in name}
        environment = {
            **own,
            "RAILGUN_CLUSTER__TOPIC_PREFIX": prefix,
            "RAILGUN_INPUT__TRANSACTIONAL": str(transactional).lower(),
            "RAILGUN_KAFKA__SESSION_TIMEOUT_MS": "6000",
        }
        address = f"127.0.0.1:{self._port}"
        try:
            self._process = Forked(
                "railgun", ["frontend", "--broker", broker, "--http", address], env=environment
            )
        except BaseException:
            self._held.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._held.close()

    def await_partitions(self) -> None:
        """Return when the group has given it partitions to read."""
        with httpx.Client(base_url=f"http://127.0.0.1:{self._port}", trust_env=False) as client:
            awaited(lambda: self._reads(client), _SETTLES_S)

    def _reads(self, client: httpx.Client) -> bool:
        assert self._process.poll() is None
        try:
            lines = client.get("/metrics").text.splitlines()
        except httpx.TransportError:
            return False
        return any(
            line.startswith("railgun_input_partitions{") and line.split()[1] != "0.0" for line in lines
        )


class Traffic:
    """Sends events for some seconds while other things happen. sent: by partition and offset."""

    def __init__(self, topic: InputTopic, events: list[dict[str, Any]], seconds: float, seed: int) -> None:
        self._topic, self._events, self._seconds = topic, events, seconds
        self._chosen = random.Random(seed)
        self.sent: dict[tuple[int, int], dict[str, Any]] = {}
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        left = list(self._events)
        while left:
            count, partition = self._chosen.randrange(1, 12), self._chosen.randrange(INPUT_PARTITIONS)
            part, left = left[:count], left[count:]
            for offset, event in zip(self._topic.send(part, partition), part):
                self.sent[partition, offset] = event
            time.sleep(self._seconds * len(part) / len(self._events))

    def join(self) -> None:
        self._thread.join()


def await_committed(topic: InputTopic, sent: Sent) -> None:
    """Return when the group has committed all that was sent."""
    ends = {p: 1 + max((o for q, o in sent if q == p), default=-1) for p in range(INPUT_PARTITIONS)}
    pending = [KafkaTopicPartition(topic.input, partition) for partition in ends]
    consumer = Consumer({"bootstrap.servers": topic.broker, "group.id": topic.input})
    try:
        awaited(
            lambda: all(each.offset >= ends[each.partition] for each in consumer.committed(pending, 60)),
            _SETTLES_S,
        )
    finally:
        consumer.close()


def place_of(message: Message) -> tuple[int, int]:
    """The partition and the offset that the headers of a reply or a letter say."""
    said = headers_of(message)
    return int(said["partition"]), int(said["offset"])


def check_letters(topic: InputTopic, expected: Expected, *, once: bool) -> None:
    """What is refused has a letter, and what is discarded as late has one that says which partitioners did so."""
    wanted = dict.fromkeys(expected.unanswerable, "") | {
        where: ",".join(names) for where, names in expected.discarded.items()
    }
    got = [(place_of(letter), headers_of(letter).get("late", "")) for letter in topic.letters]
    assert dict(got) == wanted
    assert not once or len(got) == len(wanted)


def check(topic: InputTopic, expected: Expected, *, once: bool) -> None:
    """Every event is answered as the oracle says or has a letter; `once`: exactly that often."""
    topic.read_all()
    check_letters(topic, expected, once=once)
    assert {place_of(reply): (reply.key() or b"").decode() for reply in topic.written} == expected.ids
    got: dict[str, list[str]] = defaultdict(list)
    for key, reply in topic.answered:
        got[key.decode()].append(canonical(json.loads(reply)))
    assert got.keys() == expected.replies.keys()
    for key, texts in expected.replies.items():
        if once:
            assert sorted(got[key]) == sorted(texts), key
        else:
            assert set(got[key]) == set(texts), key
            assert len(got[key]) >= len(texts)


def play(
    kafka: str,
    folder: Path,
    seed: int,
    events: int,
    kills: int,
    *,
    transactional: bool,
    is_computed: bool = False,
) -> None:
    """A front-end that stays, others beside it that are killed one after another under load."""
    drawn = timed_case(seed, events, is_computed=is_computed)
    chosen = random.Random(seed)
    left = [dict(step.event) for step in drawn.steps if isinstance(step, Score)]
    share = -(-len(left) // kills)
    sent: dict[tuple[int, int], dict[str, Any]] = {}
    with LocalCluster(kafka, folder) as cluster:
        define(cluster, drawn.definitions)
        cluster.start_units(UNITS)
        with (
            InputTopic(kafka, cluster.prefix, STREAM, INPUT_PARTITIONS) as topic,
            FrontEndProcess(kafka, cluster.prefix, transactional=transactional),
        ):
            for number in range(kills):
                with FrontEndProcess(kafka, cluster.prefix, transactional=transactional) as process:
                    process.await_partitions()
                    traffic = Traffic(topic, left[:share], 2.0, seed + number)
                    left = left[share:]
                    time.sleep(chosen.uniform(0.2, 1.8))
                    if number % 2:
                        cluster.stop_units(checkpoint=False)
                        cluster.start_units(UNITS)
                    process.kill()
                    traffic.join()
                    sent |= traffic.sent
            await_committed(topic, sent)
            expected = Expected(kafka, cluster.prefix, drawn.definitions, sent)
            check(topic, expected, once=transactional)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("transactional", [False, True])
def test_killed_under_load(kafka: str, tmp_path: Path, transactional: bool) -> None:
    play(kafka, tmp_path, 1 + transactional, 300, 2, transactional=transactional)


@pytest.mark.timeout(900)
def test_events_of_a_computed_partitioner_that_come_again(kafka: str, tmp_path: Path) -> None:
    """They go to the tasks that they went to before."""
    play(kafka, tmp_path, 3, 300, 2, transactional=False, is_computed=True)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(20))
def test_killed_often(kafka: str, tmp_path: Path, seed: int) -> None:
    play(kafka, tmp_path, 10 + seed, 3_000, 10, transactional=seed % 2 == 1)
