"""What an earlier release cannot read is refused by `railgun apply` until each living node and front-end reads it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from frontend.exchange.front_end import FrontEnd
from railgun.catalog.version import CATALOG_VERSION, WITH_COMPUTED, WITH_PLACES, WITH_TOPICS
from railgun.cli.main import main
from railgun.cluster.records import READS, FrontEndRecord, NodeRecord, encode_statement
from railgun.messaging.kafka.membership import GroupMembers, GroupMembership
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Entry, TopicPartition
from railgun.registry.topics import Topics
from railgun.wire.records import Records
from tests.frontend.kafka.cluster import LocalCluster
from tests.frontend.serving import until
from tests.unit.local_units import quick_settings

_SESSION_S, _POLL_S, _WRITTEN_S = 6.0, 0.1, 30.0
_RELEASE = "0.0.9"
_NODE, _FRONT_END = f"the node old-node of {_RELEASE}", f"the front-end old-front of {_RELEASE}"
# By what is new: the version that has it, the lines of a stream's fields, of its tables, and what the error calls it.
NEW = {
    "paths": (WITH_PLACES, 'x = { type = "long", from = "a.b" }', "", "from and unit (here of x)"),
    "units": (WITH_PLACES, 'x = { type = "timestamp", unit = "s" }', "", "from and unit (here of x)"),
    "computed": (WITH_COMPUTED, 'x = "long"\ny = { as = "x + 1" }', "", "computed fields (here y)"),
    "topics": (
        WITH_TOPICS,
        'x = "long"',
        '[streams.NAME.input]\ntopics = ["prod.x"]',
        "inputs (here of topics)",
    ),
    "start": (WITH_TOPICS, 'x = "long"', '[streams.NAME.input]\nstart = "latest"', "inputs (here of start)"),
    "where": (WITH_TOPICS, 'x = "long"', '[streams.NAME.input]\nwhere = "x > 1"', "inputs (here of where)"),
    "format": (WITH_TOPICS, 'x = "long"', '[streams.NAME.input]\nformat = "json"', "inputs (here of format)"),
    "output": (WITH_TOPICS, 'x = "long"', '[streams.NAME.output]\nkey = "input"', "outputs (here of output)"),
}


class Earlier:
    """A node and a front-end of an earlier release, as the cluster sees them: what they say of themselves."""

    def __init__(self, transport: KafkaTransport, topics: Topics) -> None:
        self._transport, self._topics = transport, topics
        self._front_end = FrontEnd("old-front")
        transport.create_topic(topics.replies(self._front_end.number), 1)

    def node_reads(self, catalog: int) -> None:
        self._say(
            NodeRecord(
                name="old-node",
                folder="f",
                incarnation=1,
                host="h",
                units=1,
                release=_RELEASE,
                reads={**READS, "catalog": catalog},
            )
        )

    def front_end_reads(self, catalog: int) -> None:
        self._say(
            FrontEndRecord(
                said_ms=1,
                number=self._front_end.number,
                name=self._front_end.name,
                release=_RELEASE,
                reads={**READS, "catalog": catalog},
            )
        )

    def _say(self, record: NodeRecord | FrontEndRecord) -> None:
        where = TopicPartition(self._topics.nodes, 0)
        entry = Entry(where, Records.of([encode_statement(record)]), [record.key])
        self._transport.submit([entry]).result(_WRITTEN_S)


@contextmanager
def member(broker: str, topics: Topics) -> Iterator[None]:
    """The node is a member of the group of nodes as long as the block."""
    settings, stopped = quick_settings(broker), threading.Event()

    def run() -> None:
        with GroupMembership(settings, topics.nodes, topics.leader, "old-node", _SESSION_S) as membership:
            while not stopped.is_set():
                membership.poll(_POLL_S)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        members = GroupMembers(settings, topics.nodes)
        until(lambda: "old-node" in members.now().names)
        yield
    finally:
        stopped.set()
        thread.join()


def test_each_is_refused_and_both_are_named(
    kafka: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "definitions.toml"

    def applied(name: str) -> str:
        """What `apply` says of the definitions of a stream with something new; nothing has changed if it refuses."""
        _, fields, more, _ = NEW[name]
        text = f"[streams.{name}]\n[streams.{name}.fields]\n{fields}\n{more}\n".replace("NAME", name)
        file.write_text(text, encoding="utf-8")
        code = main(["apply", str(file), "--url", served.service.url, "--no-wait"])
        said = capsys.readouterr()
        is_there = served.client.get(f"/v1/streams/{name}").status_code == 200
        assert is_there == (code == 0)
        assert (said.out + said.err).count("\n") == 1
        return said.out + said.err

    def refused(name: str, *laggards: str) -> str:
        return f"{NEW[name][3]} are not read by {', '.join(laggards)} yet; upgrade them, then register this again"

    with LocalCluster(kafka, tmp_path) as cluster, KafkaTransport(quick_settings(kafka)) as transport:
        topics = Topics(cluster.prefix)
        served = cluster.serve()
        earlier = Earlier(transport, topics)
        with member(kafka, topics):
            for name, (version, *_) in NEW.items():
                earlier.node_reads(version - 1)
                earlier.front_end_reads(version - 1)
                assert refused(name, _NODE, _FRONT_END) in applied(name)
                earlier.front_end_reads(version)
                assert refused(name, _NODE) in applied(name)
                earlier.node_reads(version)
                assert applied(name) == f"created stream {name}\n"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"fields": {"y": {"type": "long", "from": "a.b"}}}, "from and unit (here of y)"),
        ({"fields": {"y": {"as": "x + 1"}}}, "computed fields (here y)"),
        ({"input": {"topics": ["prod.x"]}}, "inputs (here of s)"),
        ({"output": {"include": ["x"]}}, "outputs (here of s)"),
        ({"fields": {"x": {"type": "long", "from": "a.b"}}}, "changes of from, unit and where (here of s)"),
        ({"input": {"where": "x > 1"}}, "changes of from, unit and where (here of s)"),
    ],
)
def test_what_a_stream_gets_later_is_refused_too(
    kafka: str, tmp_path: Path, change: dict[str, object], what: str
) -> None:
    with LocalCluster(kafka, tmp_path) as cluster, KafkaTransport(quick_settings(kafka)) as transport:
        client = cluster.serve().client
        assert client.post("/v1/streams", json={"name": "s", "fields": {"x": "long"}}).status_code == 201
        before = client.get("/v1/streams/s").json()
        earlier = Earlier(transport, Topics(cluster.prefix))
        earlier.front_end_reads(1)
        answer = client.patch("/v1/streams/s", json=change)
        assert answer.status_code == 409
        assert answer.json()["detail"].startswith(f"{what} are not read by {_FRONT_END} yet")
        assert client.get("/v1/streams/s").json() == before
        earlier.front_end_reads(CATALOG_VERSION)
        assert client.patch("/v1/streams/s", json=change).status_code == 200
