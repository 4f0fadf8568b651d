"""The methods of the client library for operators: nodes of a cluster, deepenings, the log of changes.

Each public function is a method of both `Client` and `AsyncClient`, as in `railgun/client/calls.py`. A call is made of
steps (`railgun/client/steps.py`). A deepening gives a live stream older history than its log has: `begin_deepening`,
then `railgun backfill` builds the history, then `install_deepening`.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from railgun.client.address import node_path, stream_path
from railgun.client.calls import change, read_bytes, read_table, read_tables
from railgun.client.replies import table_of
from railgun.client.steps import Session, Steps


def cluster(session: Session) -> Steps[dict[str, Any]]:
    """Return the nodes of a cluster, the copies of each task, and the leader."""
    return read_table(session, "/v1/cluster")


def what_if(session: Session, change: str) -> Steps[dict[str, Any]]:
    """Return the moves that a change of the cluster would cause. change: remove=NODE, add=NUMBER or copies=NUMBER."""
    return read_table(session, f"/v1/cluster/plan?what_if={quote(change, safe='')}")


def change_log(session: Session, limit: int, before: int | None = None) -> Steps[list[dict[str, Any]]]:
    """Return the changes of streams and metrics with their authors, newest first.

    before: only changes whose place is smaller.
    """
    query = urlencode({"limit": limit, **({} if before is None else {"before": before})})
    return read_tables(session, f"/v1/log?{query}", "changes")


def bundle(session: Session) -> Steps[bytes]:
    """Return a support bundle, which is a ZIP file: versions, settings without secrets, status, cluster, figures, the
    last changes. Its `about.json` says what is missing, and why.
    """
    return read_bytes(session, "/v1/support")


def drain(session: Session, node: str, *, fewer_copies: bool = False) -> Steps[dict[str, Any]]:
    """Order that a node is emptied. Return its state."""
    return _changed(session, f"{node_path(node)}/drain", {"fewer_copies": fewer_copies})


def undrain(session: Session, node: str) -> Steps[dict[str, Any]]:
    """Order that a node is used again. Return its state."""
    return _changed(session, f"{node_path(node)}/undrain")


def accept_cut(session: Session, stream: str, partitioner: str, partition: int) -> Steps[dict[str, Any]]:
    """Let a task go on without the records that its log has lost, or begin again in another one. Return which records
    are lost.
    """
    task = {"stream": stream, "partitioner": partitioner, "partition": partition}
    return _changed(session, "/v1/cluster/accept-cut", task)


def accept_gap(
    session: Session,
    stream: str,
    partitioner: str,
    partition: int,
    *,
    node: str = "",
    agreed: Mapping[str, Any] | None = None,
    dry_run: bool = False,
) -> Steps[dict[str, Any]]:
    """Let a task go on behind a gap: its log no longer reaches the state of any copy. Return what is lost.

    node: the node with whose state it continues; empty: that with the newest one.
    agreed: what a dry run returned. The order is refused if it is another gap by now.
    dry_run: only return what would be lost.
    """
    task = {"stream": stream, "partitioner": partitioner, "partition": partition}
    gap = {} if agreed is None else {key: agreed[key] for key in ("first", "offset")}
    return _changed(session, "/v1/cluster/accept-gap", {**task, **gap, "from": node, "dry_run": dry_run})


def begin_deepening(session: Session, stream: str, cut_ms: int | None) -> Steps[dict[str, Any]]:
    """Begin the deepening of a stream, so that older history can be built for it. Return its state.

    cut_ms: the history that is built ends before this time. None: the server chooses the time.
    """
    return _changed(session, f"{stream_path(stream)}/deepening", {"cut_ms": cut_ms})


def install_deepening(session: Session, stream: str) -> Steps[None]:
    """Let the tasks that were built take over. `deepening` returns the progress."""
    yield from change(session, "POST", f"{stream_path(stream)}/deepening/install", {})


def deepening(session: Session, stream: str) -> Steps[dict[str, Any]]:
    """Return the state of the deepening of a stream: state, history, behind, failure."""
    return read_table(session, f"{stream_path(stream)}/deepening")


def give_up_deepening(session: Session, stream: str) -> Steps[None]:
    """Give up the deepening of a stream, and delete its files."""
    yield from change(session, "DELETE", f"{stream_path(stream)}/deepening")


def _changed(session: Session, path: str, body: dict[str, Any] | None = None) -> Steps[dict[str, Any]]:
    answer = yield from change(session, "POST", path, body)
    return table_of(answer.content, session.place(path))
