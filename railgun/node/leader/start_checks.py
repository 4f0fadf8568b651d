"""Refuses a node if its folder is another cluster's, if another node has its name, or if it cannot read the plan.

The leader's process calls it when it starts.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from railgun.catalog.catalog import Catalog
from railgun.cluster.records import NewerRecordError, NodeRecord, PlanReader, decode_statement
from railgun.cluster.silence import JOINS_S
from railgun.host.data_folder import TASKS, stream_folder
from railgun.messaging.errors import UnreadableRecordError
from railgun.messaging.tail import Tail, each_record, leave_out
from railgun.messaging.transport import TopicPartition, Transport
from railgun.node.identity import Identity, NodeRefusedError, keep_catalogue, kept_catalogue

_AGAIN_S = 0.5


def check_folder(data: Path, catalogue: str, catalog: Catalog, cluster: str) -> None:
    """Check that a node's folder is one of this cluster, and note that in the folder.

    A unit deletes the folders of streams that the catalogue does not have. With the catalogue of another cluster it
    would delete all.

    catalogue: the id of the catalogue's topic. A topic that is made again under the same name has another id.
    catalog: the content of that topic.
    cluster: the cluster's name in messages.
    Raises NodeRefusedError, IdentityError, and OSError.
    """
    kept = kept_catalogue(data)
    if kept not in ("", catalogue):
        raise NodeRefusedError(
            f"{data}: this folder is of another cluster: its tasks are of catalogue {kept}, {cluster} has {catalogue}; "
            "name the folder of a node of this cluster, or an empty one"
        )
    # A folder of an earlier release does not name its cluster.
    tasks = data / TASKS
    folders = sorted(each.name for each in tasks.iterdir()) if not kept and tasks.is_dir() else []
    known = {stream_folder(name, entry.created) for name, entry in catalog.streams.items()}
    if folders and not known & set(folders):
        raise NodeRefusedError(
            f"{data}: {cluster} has none of the streams whose tasks are in this folder ({folders[0]}); name the "
            "folder of a node of this cluster, or an empty one; if the streams were dropped, delete the folder"
        )
    keep_catalogue(data, catalogue)


@dataclass(frozen=True, slots=True)
class SaidBefore:
    """The records under a node's name from before its process began.

    incarnation: that of the newest run of a node with this name, whatever its data folder, because earlier runs are not
        followed. 0 if none was heard.
    end: the end of the topic `nodes` at that time.
    """

    incarnation: int
    end: int


def check_name(
    transport: Transport,
    nodes: TopicPartition,
    members: Callable[[], set[str]],
    identity: Identity,
    within_s: float,
    stopped: threading.Event,
) -> SaidBefore:
    """Wait until no other live node has the name of this one, which is not a member yet.

    If two nodes of one name begin at the same time, `Leading` ends one of them.

    members: returns the names of the nodes that live.
    within_s: a node that died may be a member for so long, in seconds. After that the name is refused.
    Raises NodeRefusedError, and TransportError.
    """
    host, said = _said_before(transport, nodes, identity)
    waited_s = away_s = 0.0
    while host is not None and away_s < JOINS_S and not stopped.is_set():
        away_s = 0.0 if identity.name in members() else away_s + _AGAIN_S
        waited_s = 0.0 if away_s else waited_s + _AGAIN_S
        if waited_s > within_s:
            raise NodeRefusedError(name_in_use(host, identity.name))
        stopped.wait(_AGAIN_S)
    return said


def name_in_use(host: str, name: str) -> str:
    """Return the reason to refuse a node whose name another one has. host: the machine of the other one."""
    return f"cluster.node_name: another node, on {host}, is called {name}; give this one a name of its own"


def check_plan(transport: Transport, assignment: TopicPartition) -> None:
    """Check that this release can read the plan. Raises NodeRefusedError, and TransportError.

    A node that cannot read it would have no tasks. It must not write a record of itself either: fields that its release
    does not know would be lost.
    """
    reader = PlanReader()

    def refuse_newer(_: TopicPartition, error: UnreadableRecordError) -> None:
        # `Leading` logs other records that cannot be read.
        if isinstance(error, NewerRecordError):
            raise NodeRefusedError(f"{error}; start a release that does, as the other nodes have") from None

    taker = each_record(lambda _, record: reader.take(record), refuse_newer)
    Tail(transport, {assignment: taker}).read_to_the_end()


def _said_before(
    transport: Transport, nodes: TopicPartition, identity: Identity
) -> tuple[str | None, SaidBefore]:
    """Return the machine of the last other node with the name, or None; and what was said of this node before."""
    host: str | None = None
    incarnation = 0

    def take(_: int, record: bytes) -> None:
        nonlocal host, incarnation
        node = decode_statement(record)
        if isinstance(node, NodeRecord) and node.name == identity.name:
            host = None if node.folder == identity.folder else node.host
            incarnation = max(incarnation, node.incarnation)

    tail = Tail(transport, {nodes: each_record(take, leave_out)})
    tail.read_to_the_end()
    return host, SaidBefore(incarnation, tail.offsets[nodes])
