"""A field's path and unit, and the condition of records, change while input topics are read: each record is read by the
mapping that holds at its offset, whoever reads it, and how often."""

import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from frontend.topics import mappings
from frontend.topics.inputs import Inputs
from railgun.config.settings import InputSettings
from railgun.messaging.kafka.group import GroupMember, leave
from railgun.messaging.kafka.membership import GroupMembers
from railgun.messaging.transport import TopicPartition
from railgun.registry.input_topics import InputTopic as RecordedTopic
from railgun.registry.kafka_registry import KafkaRegistry
from tests.frontend.kafka.cluster import LocalCluster, RunningFrontEnd
from tests.frontend.serving import PATIENCE_S, until
from tests.frontend.topics.input_topic import InputTopic
from tests.frontend.topics.test_input_crashes import FrontEndProcess, place_of
from tests.frontend.topics.test_input_topic import define
from tests.unit.local_units import quick_settings

STREAM = """
[streams.moved]
id = "tx"
partitioners = ["card"]
[streams.moved.fields]
tx = "string"
card = "string"
n = { type = "long", from = "a.n" }
seen = { type = "timestamp", unit = "s" }
[streams.moved.output]
include = ["n", "seen"]
[[metrics]]
sql = "SELECT count(*) AS events FROM moved GROUP BY card OVER INFINITE"
"""
# What a field is by each mapping, in the order in which they hold.
MAPPINGS = (
    {"n": {"type": "long", "from": "a.n"}, "seen": {"type": "timestamp", "unit": "s"}},
    {"n": {"type": "long", "from": "b"}, "seen": {"type": "timestamp", "unit": "ms"}},
    {"n": "long", "seen": {"type": "timestamp", "unit": "us"}},
)
READ = ({"n": 1, "seen": 7_000_000}, {"n": 2, "seen": 7_000}, {"n": 3, "seen": 7})
PARTITIONS = 3


def event(name: str) -> dict[str, Any]:
    return {"tx": name, "card": name[-1:], "a": {"n": 1}, "b": 2, "n": 3, "seen": 7_000}


def change(served: RunningFrontEnd, **settings: Any) -> int:
    """Change the stream. Returns the number of the change."""
    answer = served.client.patch("/v1/streams/moved", json=settings)
    assert answer.status_code == 200, answer.text
    return int(served.client.get("/v1/log").json()["changes"][0]["place"])


def recorded(cluster: LocalCluster) -> RecordedTopic:
    """The stream's topic, as the catalogue has it."""
    with KafkaRegistry(quick_settings(cluster.broker), cluster.prefix) as registry:
        created = registry.snapshot().catalog.streams["moved"].created
        (found,) = registry._state.topics[created].values()
        return found


def await_mapping(cluster: LocalCluster, place: int) -> None:
    """Return once it is recorded from where a mapping holds."""
    deadline = time.monotonic() + 2 * PATIENCE_S
    while recorded(cluster).mapped != place:
        assert time.monotonic() < deadline, recorded(cluster)
        time.sleep(0.2)


class Writer:
    """Writes events all the time. sent: the places of those that are written."""

    def __init__(self, topic: InputTopic) -> None:
        self._topic, self._ended = topic, threading.Event()
        self.sent: list[tuple[int, int]] = []
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        chosen, number = random.Random(1), 0
        while not self._ended.is_set():
            partition, count = chosen.randrange(PARTITIONS), chosen.randrange(1, 9)
            names = [f"{number + each}" for each in range(count)]
            self.sent += [(partition, offset) for offset in self._topic.send(map(event, names), partition)]
            number += count
            time.sleep(0.02)

    @contextmanager
    def writing(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._ended.set()
            self._thread.join()

    def await_more(self, count: int = 100) -> None:
        wanted = len(self.sent) + count
        until(lambda: len(self.sent) >= wanted)


def check(topic: InputTopic, sent: list[tuple[int, int]], starts: list[tuple[int, ...]]) -> None:
    """Each record has one reply, by the mapping that holds at its offset. starts: of each mapping but the first."""
    topic.await_replies(len(sent), 4 * PATIENCE_S)
    assert sorted(map(place_of, topic.written)) == sorted(sent)
    for message in topic.written:
        partition, offset = place_of(message)
        number = sum(each[partition] <= offset for each in starts)
        assert json.loads(message.value() or b"")["fields"] == READ[number], (partition, offset, starts)


@pytest.mark.timeout(900)
def test_under_load_with_two_front_ends_of_which_one_is_killed(kafka: str, tmp_path: Path) -> None:
    with (
        LocalCluster(kafka, tmp_path) as cluster,
        InputTopic(kafka, cluster.prefix, "moved", PARTITIONS) as topic,
        FrontEndProcess(kafka, cluster.prefix, transactional=True) as other,
    ):
        define(cluster, STREAM)
        cluster.start_units(2)
        served = cluster.serve(intake=InputSettings(transactional=True))
        other.await_partitions()
        writer = Writer(topic)
        with writer.writing():
            writer.await_more()
            first = change(served, fields=MAPPINGS[1])
            writer.await_more()
            # It may have heard of the change, or not.
            other.kill()
            await_mapping(cluster, first)
            writer.await_more()
            with FrontEndProcess(kafka, cluster.prefix, transactional=True) as again:
                again.await_partitions()
                second = change(served, fields=MAPPINGS[2])
                await_mapping(cluster, second)
                writer.await_more()
            writer.await_more()
        found = recorded(cluster).mappings
        assert [each.place for each in found] == [first, second]
        starts = [each.starts for each in found]
        # There are records of each partition before, between and behind the changes.
        for partition in range(PARTITIONS):
            end = 1 + max(offset for of, offset in writer.sent if of == partition)
            assert 0 < starts[0][partition] < starts[1][partition] < end
        check(topic, writer.sent, starts)
        assert topic.letters == []


def newest(topic: RecordedTopic, partition: int, offset: int) -> int:
    """The canary: records from before a change are read by what holds now."""
    return topic.mapped


@pytest.mark.parametrize("is_planted", [False, True])
def test_what_was_read_and_not_answered_is_read_again_in_the_same_way(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_planted: bool
) -> None:
    if is_planted:
        monkeypatch.setattr(RecordedTopic, "mapping_at", newest)
    with LocalCluster(kafka, tmp_path) as cluster, InputTopic(kafka, cluster.prefix, "moved") as topic:
        define(cluster, STREAM)
        served = cluster.serve()
        sent = [(0, each) for each in topic.send(map(event, "abc"))]
        until(lambda: in_flight(served) == 3)
        place = change(served, fields=MAPPINGS[1], input={"where": "card <> 'z'"})
        await_mapping(cluster, place)
        until(lambda: in_flight(served) == 3)
        cluster.start_units(1)
        topic.await_replies(3)
        sent += [(0, each) for each in topic.send(map(event, "yyz"))][:2]
        topic.await_replies(5)
        starts = recorded(cluster).mappings[-1].starts
        assert starts == (3,)
        if is_planted:
            with pytest.raises(AssertionError):
                check(topic, sent, [starts])
            return
        check(topic, sent, [starts])


def in_flight(served: RunningFrontEnd) -> int:
    inputs = served.backend.inputs
    running = None if inputs is None else inputs.running.get("moved")
    return 0 if running is None else running.windows.events


def test_a_condition_that_changes_leaves_nothing_unanswered(kafka: str, tmp_path: Path) -> None:
    """What was counted is answered, though the condition of now would leave it out."""
    with LocalCluster(kafka, tmp_path) as cluster, InputTopic(kafka, cluster.prefix, "moved") as topic:
        define(cluster, STREAM)
        served = cluster.serve()
        topic.send(map(event, "abab"))
        until(lambda: in_flight(served) == 4)
        await_mapping(cluster, change(served, input={"where": "card = 'b'"}))
        topic.send(map(event, "bab"))
        cluster.start_units(1)
        assert [each["id"] for each in topic.await_replies(6)] == [*"abab", *"bb"]
        await_mapping(cluster, change(served, input=None))
        topic.send([event("a")])
        assert topic.await_replies(7)[-1]["id"] == "a"


class Earlier:
    """Another front-end that has not heard of a change, as its group sees it. It reads nothing."""

    def start(self, where: TopicPartition, committed: int) -> int | None:
        return max(committed, 0)

    def assigned(self, partitions: list[TopicPartition]) -> None:
        """They stay where they are."""

    revoked = lost = assigned

    def committed(self, positions: Any) -> None:
        """It commits none."""


@contextmanager
def polled(member: GroupMember) -> Iterator[None]:
    """A member of a group as long as the block."""
    ended = threading.Event()

    def run() -> None:
        while not ended.is_set():
            member.pause()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        leave(member)


def test_nobody_reads_by_the_new_mapping_while_a_member_reads_by_an_earlier_one(
    kafka: str, tmp_path: Path
) -> None:
    with LocalCluster(kafka, tmp_path) as cluster, InputTopic(kafka, cluster.prefix, "moved", 2) as topic:
        define(cluster, STREAM)
        cluster.start_units(1)
        served = cluster.serve()
        settings, group = quick_settings(kafka), topic.input
        sent = [(0, each) for each in topic.send(map(event, "abc"))]
        topic.await_replies(3)
        with polled(GroupMember(settings, group, [topic.input], Earlier(), "-earlier")):
            until(lambda: "railgun-earlier" in GroupMembers(settings, group).now().names)
            place = change(served, fields=MAPPINGS[1])
            until(lambda: "railgun-earlier of the group" in why_unread(served))
            sent += [(0, each) for each in topic.send(map(event, "de"))]
            time.sleep(1.5)
            assert (recorded(cluster).mapped, len(topic.replies)) == (0, 3)
        await_mapping(cluster, place)
        assert recorded(cluster).mappings[-1].starts == (5, 0)
        sent += [(1, each) for each in topic.send(map(event, "fg"), 1)]
        check(topic, sent, [(5, 0)])
        names = GroupMembers(settings, group).now().names
        assert names == {f"railgun-mapping-{place}"}


@pytest.mark.parametrize("is_planted", [False, True])
def test_who_is_no_member_any_more_publishes_nothing_by_an_earlier_mapping(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_planted: bool
) -> None:
    """As one that stood still until its group forgot it, or joined after the members were looked at."""
    may_look, look, held = threading.Event(), Inputs._look, list[object]()

    def looks(own: Inputs) -> None:
        if own in held:
            may_look.wait(4 * PATIENCE_S)
        look(own)

    monkeypatch.setattr(Inputs, "_look", looks)
    monkeypatch.setattr(mappings, "_check_members", lambda *_: None)
    if is_planted:
        monkeypatch.setattr(Inputs, "_is_mapped_so", lambda *_: True)
    with LocalCluster(kafka, tmp_path) as cluster, InputTopic(kafka, cluster.prefix, "moved", 2) as topic:
        define(cluster, STREAM)
        cluster.start_units(1)
        served, other = cluster.serve(), cluster.serve()
        until(lambda: has_partitions(served) and has_partitions(other))
        sent = [(each, offset) for each in range(2) for offset in topic.send(map(event, "abc"), each)]
        topic.await_replies(6)
        held.append(other.backend.inputs)
        try:
            await_mapping(cluster, change(served, fields=MAPPINGS[1]))
            # What the other one saw of the catalogue counts for a second.
            time.sleep(1.5)
            sent += [(each, offset) for each in range(2) for offset in topic.send(map(event, "def"), each)]
            # The first one reads one of the partitions alone. The other one has the other until it leaves.
            topic.await_replies(9 + 3 * is_planted)
            time.sleep(1.0)
            assert len(topic.replies) == 9 + 3 * is_planted
        finally:
            may_look.set()
        if is_planted:
            with pytest.raises(AssertionError):
                check(topic, sent, [(3, 3)])
        else:
            check(topic, sent, [(3, 3)])


def has_partitions(served: RunningFrontEnd) -> bool:
    inputs = served.backend.inputs
    running = None if inputs is None else inputs.running.get("moved")
    return running is not None and len(running.windows.all()) == 1


def why_unread(served: RunningFrontEnd) -> str:
    (stream,) = served.client.get("/v1/status").json()["streams"]
    return str(stream["input"])


def test_a_topic_that_comes_later_is_read_by_what_holds_then(kafka: str, tmp_path: Path) -> None:
    with LocalCluster(kafka, tmp_path) as cluster:
        define(cluster, STREAM)
        cluster.start_units(1)
        served = cluster.serve()
        assert served.score("moved", event("x"))["metrics"] == {"events": 1}
        place = change(served, fields=MAPPINGS[1])
        with InputTopic(kafka, cluster.prefix, "moved", 2) as topic:
            sent = [(1, each) for each in topic.send(map(event, "abc"), 1)]
            check(topic, sent, [(0, 0)])
            assert [(each.place, each.starts) for each in recorded(cluster).mappings] == [(place, ())]


def test_over_http_a_change_holds_at_once(kafka: str, tmp_path: Path) -> None:
    with LocalCluster(kafka, tmp_path) as cluster:
        define(cluster, STREAM)
        cluster.start_units(1)
        served = cluster.serve()
        wrong = {**event("x"), "b": "no number"}
        assert served.score("moved", wrong)["metrics"] == {"events": 1}
        change(served, fields=MAPPINGS[1])
        answer = served.post("/v1/streams/moved/events", {**wrong, "tx": "y"})
        assert answer.status_code == 422
        assert "b" in answer.json()["detail"]
