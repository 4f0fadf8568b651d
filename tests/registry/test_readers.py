"""Fields with paths are registered only once all nodes and front-ends that live read them."""

from dataclasses import dataclass
from typing import Any

import pytest

from railgun.catalog.changes import Change, DropStream, PutStream
from railgun.catalog.model import StreamDefinition
from railgun.catalog.stream_reading import stream_from_json
from railgun.cluster.records import READS, DrainOrder, FrontEndRecord, NodeRecord, encode_statement
from railgun.messaging.kafka.membership import Members
from railgun.registry import readers
from railgun.registry.errors import DefinitionsError
from railgun.registry.readers import CatalogReaders
from railgun.registry.topics import Topics

TOPICS = Topics("p")
PLAIN = stream_from_json({"name": "s", "fields": {"x": "long"}})
PLACED = stream_from_json({"name": "s", "fields": {"x": "long", "y": {"type": "long", "from": "a.b"}}})
BEFORE = {"nodes": 1, "plan": 1, "reports": 2}


@dataclass
class Fetched:
    records: list[bytes]

    def values(self) -> list[bytes]:
        return self.records


class Cluster:
    """What the broker has: members of the group of nodes, topics, and the records of nodes and front-ends."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.members: set[str] = set()
        self.existing = {TOPICS.nodes: 1, "p.s.by.x": 1, "q.replies.9": 1}
        self.records: list[bytes] = []
        self.asked = 0
        patch.setattr(readers, "GroupMembers", lambda *_: self)
        patch.setattr(readers, "read_to_the_end", lambda *_: [Fetched(self.records)])
        self._readers = CatalogReaders(None, TOPICS, self)  # type: ignore[arg-type]

    def topics(self) -> dict[str, int]:
        self.asked += 1
        return self.existing

    def now(self) -> Members:
        return Members(self.members, None)

    def node(self, name: str, reads: dict[str, int], release: str = "0.1.0") -> None:
        said = NodeRecord(
            name=name, folder="f", incarnation=1, host="h", units=1, release=release, reads=reads
        )
        self.records.append(encode_statement(said))

    def front_end(self, number: int, reads: dict[str, int]) -> None:
        said = FrontEndRecord(said_ms=1, number=number, name=f"front-{number}", release="0.1.0", reads=reads)
        self.records.append(encode_statement(said))

    def laggards(self, change: Change | None = None, known: dict[str, Any] | None = None) -> str | None:
        try:
            self._readers.check([change or PutStream(1, PLACED, 1)], {} if known is None else known)
        except DefinitionsError as error:
            return str(error).removeprefix("from and unit (here of y) are not read by ").partition(" yet;")[0]
        return None


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


def test_nobody_else_lives(cluster: Cluster) -> None:
    cluster.node("gone", BEFORE)
    cluster.front_end(5, BEFORE)
    assert cluster.laggards() is None
    del cluster.existing[TOPICS.nodes]
    assert cluster.laggards() is None


def test_nodes(cluster: Cluster) -> None:
    cluster.members = {"one", "two", "three", "silent"}
    cluster.node("one", BEFORE)
    cluster.node("one", dict(READS))
    cluster.node("two", BEFORE, "0.0.9")
    cluster.node("three", {})
    cluster.records += [b"", b'{"kind": "later"}', b'{"version": 9}']
    cluster.records.append(encode_statement(DrainOrder(node="two", asked_ms=1, is_on=True)))
    assert cluster.laggards() == "the node silent, the node three of 0.1.0, the node two of 0.0.9"
    cluster.members = {"one"}
    assert cluster.laggards() is None


def test_front_ends(cluster: Cluster) -> None:
    for number in (5, 6, 7):
        cluster.existing[TOPICS.replies(number)] = 1
    cluster.front_end(5, dict(READS))
    cluster.front_end(6, BEFORE)
    found = cluster.laggards()
    assert found == (
        "the front-end front-6 of 0.1.0, the front-end of the topic p.replies.7 (if it has died, delete the topic)"
    )
    cluster.front_end(6, {**BEFORE, "catalog": 9})
    cluster.front_end(7, dict(READS))
    assert cluster.laggards() is None


def test_computed_fields_need_a_later_version(cluster: Cluster) -> None:
    cluster.members = {"one"}
    cluster.node("one", {**BEFORE, "catalog": 2})
    stream = stream_from_json({"name": "s", "fields": {"x": "long", "y": {"as": "x + 1"}}})
    assert cluster.laggards() is None
    found = cluster.laggards(PutStream(1, stream, 1))
    assert found == "computed fields (here y) are not read by the node one of 0.1.0"
    assert cluster.laggards(PutStream(2, stream, 1), {"s": stream}) is None


@pytest.mark.parametrize(
    ("said", "other", "what"),
    [
        ({"input": {"format": "json"}}, {"input": {"topics": ["a"]}}, "inputs"),
        ({"output": {"key": "input"}}, {"output": {"topic": "elsewhere"}}, "outputs"),
    ],
)
def test_inputs_and_outputs_need_a_later_version(
    cluster: Cluster, said: dict[str, Any], other: dict[str, Any], what: str
) -> None:
    def stream(more: dict[str, Any]) -> StreamDefinition:
        return stream_from_json({"name": "s", "fields": {"x": "long"}, **more})

    cluster.members = {"one"}
    cluster.node("one", {**BEFORE, "catalog": 3})
    new = PutStream(1, stream(said), 1)
    assert cluster.laggards() is None
    assert cluster.laggards(new) == f"{what} (here of s) are not read by the node one of 0.1.0"
    assert cluster.laggards(new, {"s": PLAIN}) == cluster.laggards(new)
    # They were asked about it before.
    assert cluster.laggards(PutStream(2, stream(other), 1), {"s": new.stream}) is None
    assert cluster.laggards(PutStream(2, PLAIN, 1), {"s": new.stream}) is None
    cluster.node("one", dict(READS))
    assert cluster.laggards(new) is None


def test_what_all_read_is_not_asked_about(cluster: Cluster) -> None:
    cluster.members = {"silent"}
    for change, known in (
        (PutStream(1, PLAIN, 1), {}),
        (PutStream(2, PLACED, 2), {"s": PLACED}),
        (DropStream(2, "s"), {"s": PLACED}),
    ):
        assert cluster.laggards(change, known) is None
    assert cluster.asked == 0
    assert cluster.laggards(PutStream(2, PLACED, 2), {"s": PLAIN}) == "the node silent"
