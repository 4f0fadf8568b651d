"""From which records on a changed mapping holds: who is waited for, what is recorded, and how records are parted."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Message

from frontend.topics import mappings
from frontend.topics.mapped_intakes import MappedIntakes
from frontend.topics.mappings import MappingPendingError, mapped_of, mapped_topics, member_suffix
from frontend.topics.route import Route
from frontend.topics.stream_input import StreamInput, _ReadTogether
from frontend.topics.stream_output import StreamOutput
from frontend.topics.windows import Window
from railgun.catalog.model import ReplyKey
from railgun.config.kinds import ConfigError
from railgun.config.settings import Settings
from railgun.messaging.errors import TransportUnavailableError
from railgun.messaging.kafka.configured import kafka_settings
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.topics import Described
from railgun.messaging.transport import TopicPartition
from railgun.registry.input_topics import InputTopic, MappedFrom
from railgun.registry.topics import Topics

OUTPUT = StreamOutput("out", "dead", ReplyKey.ID, (), discards_late=False)
TOPICS = [InputTopic("a", "id-a", 1), InputTopic("b", "id-b", 2, mappings=(MappedFrom(7),))]


def route(mapped: int) -> Route:
    return Route("s", 1, (("a", "id-a"), ("b", "id-b")), OUTPUT, mapped)


class Cluster:
    """A group, a broker and a catalogue, as far as mappings need them.

    members: the `client.id` of each member.  asked: how often the group was described.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.members, self.asked = set[str](), 0
        self.found: dict[str, Any] = {"a": Described("id-a", 2), "b": Described("id-b", 1)}
        self.ends = {
            TopicPartition("a", 0): (3, 10),
            TopicPartition("a", 1): (0, 0),
            TopicPartition("b", 0): (2, 8),
        }
        self.known = {each.id: each for each in TOPICS}
        self.transport: Any = SimpleNamespace(
            described=lambda names: {each: self.found[each] for each in names},
            bounds_of=lambda wheres, _: {each: self.ends[each] for each in wheres if each in self.ends},
        )
        self.means: Any = SimpleNamespace(
            settings=None, topics=Topics("p"), registry=SimpleNamespace(map_topics=self.map_topics)
        )
        patch.setattr(mappings, "GroupMembers", self.members_of)

    def members_of(self, settings: object, group: str) -> Any:
        assert group == "p.s.in"
        self.asked += 1
        return SimpleNamespace(now=lambda: SimpleNamespace(names=self.members))

    def map_topics(
        self, created: int, place: int, ends: Mapping[str, Sequence[int]]
    ) -> dict[str, InputTopic]:
        for each, own in ends.items():
            if self.known[each].mapped < place:
                self.known[each] = self.known[each].mapped_from(place, own)
        return {each: self.known[each] for each in ends}

    def mapped(self, place: int) -> list[InputTopic]:
        return mapped_topics(route(place), list(TOPICS), self.means, self.transport)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


def test_members_say_by_which_mapping_they_read() -> None:
    assert (member_suffix(0), member_suffix(12)) == ("", "-mapping-12")
    assert [mapped_of("me" + member_suffix(each)) for each in (0, 12)] == [0, 12]
    assert [mapped_of(each) for each in ("railgun", "a-mapping-", "a-mapping-7-b", "")] == [0, 0, 0, 0]
    for name in ("railgun", "a-mapping-", "a-mapping-7-b"):
        KafkaSettings("b:1", pass_through={"client.id": name})
    with pytest.raises(ConfigError) as refused:
        kafka_settings(Settings(kafka={"client.id": "me" + member_suffix(9)}))
    assert str(refused.value) == (
        "[kafka] client.id: -mapping-9 at its end is how front-ends say by which definition they read; choose a name "
        "without that end"
    )


def test_nothing_is_asked_where_all_is_recorded(cluster: Cluster) -> None:
    topics = [TOPICS[1]]
    assert mapped_topics(route(7), topics, cluster.means, cluster.transport) == topics
    assert mapped_topics(route(0), TOPICS[:1], cluster.means, cluster.transport) == TOPICS[:1]
    assert cluster.asked == 0


def test_a_mapping_begins_at_the_ends_of_those_topics_that_lack_it(cluster: Cluster) -> None:
    cluster.members = {"railgun-mapping-7", "railgun-mapping-9"}
    assert [each.mappings for each in cluster.mapped(7)] == [(MappedFrom(7, (10, 0)),), (MappedFrom(7),)]


@pytest.mark.parametrize("member", ["railgun", "railgun-mapping-7"])
def test_a_member_with_an_earlier_mapping_is_waited_for(cluster: Cluster, member: str) -> None:
    cluster.members = {member, "railgun-mapping-9"}
    with pytest.raises(
        MappingPendingError, match=f"^{member} of the group p.s.in read by its earlier definition"
    ):
        cluster.mapped(9)
    assert cluster.known["id-a"] == TOPICS[0]
    cluster.members.discard(member)
    assert [each.mappings[-1] for each in cluster.mapped(9)] == [MappedFrom(9, (10, 0)), MappedFrom(9, (8,))]


def test_who_has_not_heard_of_a_change_reads_nothing(cluster: Cluster) -> None:
    with pytest.raises(MappingPendingError, match="has not heard of it yet"):
        mapped_topics(route(3), [TOPICS[1]], cluster.means, cluster.transport)
    cluster.known["id-a"] = TOPICS[0].mapped_from(9, [4, 4])
    with pytest.raises(MappingPendingError, match="has not heard of it yet"):
        cluster.mapped(7)


def test_a_partition_without_a_leader_and_a_topic_that_is_another_one_are_waited_for(
    cluster: Cluster,
) -> None:
    end = cluster.ends.pop(TopicPartition("a", 1))
    with pytest.raises(TransportUnavailableError, match="a-1"):
        cluster.mapped(7)
    cluster.ends[TopicPartition("a", 1)] = end
    cluster.found["a"] = Described("new", 2)
    with pytest.raises(MappingPendingError, match="the topic a is another one"):
        cluster.mapped(7)
    assert cluster.known["id-a"] == TOPICS[0]


@pytest.mark.parametrize(
    ("starts", "parts"),
    [
        ((), [[2, 3, 7, 8]]),
        (((0,),), [[2, 3, 7, 8]]),
        (((2,),), [[2, 3, 7, 8]]),
        (((3,),), [[2], [3, 7, 8]]),
        (((5,),), [[2, 3], [7, 8]]),
        (((8,),), [[2, 3, 7], [8]]),
        (((9,),), [[2, 3, 7, 8]]),
        (((3,), (3,), (8,)), [[2], [3, 7], [8]]),
        (((0, 3), (7,), (7,)), [[2, 3], [7, 8]]),
    ],
)
def test_records_that_are_read_together_are_parted_where_a_mapping_begins(
    starts: tuple[tuple[int, ...], ...], parts: list[list[int]]
) -> None:
    topic = InputTopic("a", "id-a", 1, mappings=tuple(MappedFrom(5 + n, own) for n, own in enumerate(starts)))
    means: Any = None
    intakes = MappedIntakes(route(0), {"a": topic}, means)
    messages = [Message(topic="a", partition=0, offset=each) for each in (2, 3, 7, 8)]
    found = [[each.offset() for each in own] for own in intakes.parts(TopicPartition("a", 0), messages)]
    assert found == parts
    for own in found:
        assert len({topic.mapping_at(0, each or 0) for each in own}) == 1


def test_a_part_stays_behind_one_of_its_partition_that_waits_for_a_schema() -> None:
    one, other = (Window(TopicPartition("a", each), f"id-a {each}", each) for each in range(2))
    messages = [Message(topic="a", partition=0, offset=each) for each in range(2)]
    waits, behind, beside = (
        _ReadTogether(window, [message], 0.0)
        for window, message in ((one, messages[0]), (one, messages[1]), (other, messages[0]))
    )
    means = SimpleNamespace(now_ms=lambda: 0)
    reading: Any = SimpleNamespace(_pending=[waits], _means=means, _run_of=lambda window, *_: window.place)
    assert StreamInput._run_or_pending(reading, behind) is None
    assert StreamInput._run_or_pending(reading, beside) == "id-a 1"
    assert reading._pending == [waits, behind]
