"""What a node is refused for at its start: a folder of another cluster, a name that is in use, a newer plan."""

import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from railgun.catalog.catalog import Catalog
from railgun.cluster.records import NodeRecord, encode_statement
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Entry, TopicPartition, TopicSettings
from railgun.node.identity import Identity, NodeRefusedError, node_identity
from railgun.node.leader.process import LeaderPlace, _incarnation
from railgun.node.leader.start_checks import check_folder, check_name
from railgun.wire.records import Records
from tests.broker.own_topics import own_prefix
from tests.node.leader.leading_nodes import Nodes
from tests.unit.local_units import awaited, quick_settings


@pytest.fixture
def topic(kafka: str) -> Iterator[tuple[KafkaTransport, TopicPartition]]:
    where = TopicPartition(own_prefix("n"), 0)
    with KafkaTransport(quick_settings(kafka)) as transport:
        transport.create_topic(where.topic, 1)
        yield transport, where


def _say(transport: KafkaTransport, where: TopicPartition, record: NodeRecord) -> None:
    transport.submit([Entry(where, Records.of([encode_statement(record)]), [record.key])]).result(30)


def _record(folder: str, incarnation: int = 7) -> NodeRecord:
    return NodeRecord(
        name="node-1", folder=folder, incarnation=incarnation, host="elsewhere", units=1, release="0"
    )


def test_a_folder_belongs_to_one_catalogue(tmp_path: Path) -> None:
    node_identity(tmp_path, "a")
    check_folder(tmp_path, "one", Catalog(), "here")
    check_folder(tmp_path, "one", Catalog(), "here")
    # The identity is kept beside, whatever the name becomes.
    node_identity(tmp_path, "b")
    task = tmp_path / "tasks" / "s.1"
    task.mkdir(parents=True)
    check_folder(tmp_path, "one", Catalog(), "here")
    with pytest.raises(
        NodeRefusedError, match=r"of another cluster: .* catalogue one, there has other; name"
    ):
        check_folder(tmp_path, "other", Catalog(), "there")
    assert task.is_dir()


def test_a_folder_that_does_not_say_belongs_to_a_catalogue_that_has_a_stream_of_it(
    nodes: Nodes, tmp_path: Path
) -> None:
    catalog = nodes.player.registry.snapshot().catalog
    ((name, entry),) = catalog.streams.items()
    node_identity(tmp_path, "a")
    (tmp_path / "tasks" / f"{name}.{entry.created}").mkdir(parents=True)
    (tmp_path / "tasks" / "dropped.1").mkdir()
    with pytest.raises(NodeRefusedError, match=r"none of the streams .*\(dropped.1\); name"):
        check_folder(tmp_path, "one", Catalog(), "here")
    check_folder(tmp_path, "one", catalog, "here")
    check_folder(tmp_path, "one", Catalog(), "here")


def test_a_name_of_which_another_folder_was_heard_is_free_once_its_node_stays_away(
    topic: tuple[KafkaTransport, TopicPartition],
) -> None:
    transport, where = topic
    _say(transport, where, _record("other"))
    asked: list[set[str]] = [{"node-1"}, set(), {"node-1"}, *([set()] * 6)]
    check_name(transport, where, lambda: asked.pop(0), Identity("node-1", "own"), 60.0, threading.Event())
    assert not asked
    with pytest.raises(NodeRefusedError, match="another node, on elsewhere, is called node-1"):
        check_name(transport, where, lambda: {"node-1"}, Identity("node-1", "own"), 1.0, threading.Event())
    # Its own record is no reason, and tells the newest run.
    _say(transport, where, _record("own", 9))
    said = check_name(transport, where, set, Identity("node-1", "own"), 1.0, threading.Event())
    assert (said.incarnation, said.end) == (9, 2)
    # Nor does a clock that has gone back put a new disk behind the run on the one before.
    said = check_name(transport, where, set, Identity("node-1", "new"), 1.0, threading.Event())
    assert said.incarnation == 9


@pytest.mark.parametrize(
    ("began_ms", "heard", "runs_already", "expected"),
    [(50, 0, False, 50), (50, 70, False, 71), (50, 50, False, 51), (50, 71, True, 71), (50, 40, True, 50)],
)
def test_a_run_of_a_node_is_greater_than_each_before(
    tmp_path: Path, began_ms: int, heard: int, runs_already: bool, expected: int
) -> None:
    place = LeaderPlace(tmp_path, Identity("a", "f"), 1, "0", began_ms, runs_already=runs_already)
    assert _incarnation(place, heard) == expected


def test_of_two_nodes_that_take_a_name_at_once_the_second_ends(nodes: Nodes) -> None:
    topic = nodes.player.registry.topics.nodes
    first = _record("other")
    nodes.player.transport.create_topic(topic, 1, TopicSettings(is_compacted=True))
    nodes.write(topic, first.key, encode_statement(first))
    second = nodes.start(1, checked_end=0)
    awaited(lambda: second.error is not None)
    assert isinstance(second.error, NodeRefusedError)
    assert "is called node-1" in str(second.error)
    second.error = None
    nodes.stop(1)
    # One that comes later ends itself, and nobody else.
    other = nodes.start(2, checked_end=0)
    awaited(lambda: nodes.leaders() == [2])
    late = msgspec.structs.replace(first, name="node-2")
    nodes.write(topic, late.key, encode_statement(late))
    awaited(lambda: other.leading._observed.nodes["node-2"].folder == "folder of node-2")
    assert other.error is None
