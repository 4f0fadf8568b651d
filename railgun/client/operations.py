"""What operators ask a server: nodes of a cluster, live backfills, who changed what. Methods of both clients, as in
`railgun/client/calls.py`."""

from typing import Any
from urllib.parse import quote, urlencode

from railgun.client.address import node_path, stream_path
from railgun.client.calls import change, read_table, read_tables
from railgun.client.replies import table_of
from railgun.client.steps import Session, Steps


def cluster(session: Session) -> Steps[dict[str, Any]]:
    """The nodes of a cluster, the copies of each task, and who leads."""
    return read_table(session, "/v1/cluster")


def what_if(session: Session, change: str) -> Steps[dict[str, Any]]:
    """What a change of the cluster would move: remove=NODE, add=NUMBER or copies=NUMBER."""
    return read_table(session, f"/v1/cluster/plan?what_if={quote(change, safe='')}")


def change_log(session: Session, limit: int, before: int | None = None) -> Steps[list[dict[str, Any]]]:
    """Who changed what, the newest first. before: only changes of a smaller place."""
    query = urlencode({"limit": limit, **({} if before is None else {"before": before})})
    return read_tables(session, f"/v1/log?{query}", "changes")


def drain(session: Session, node: str, *, fewer_copies: bool = False) -> Steps[dict[str, Any]]:
    """Have a node emptied; how it stands."""
    return _changed(session, f"{node_path(node)}/drain", {"fewer_copies": fewer_copies})


def undrain(session: Session, node: str) -> Steps[dict[str, Any]]:
    """Have a node used again; how it stands."""
    return _changed(session, f"{node_path(node)}/undrain")


def accept_cut(session: Session, stream: str, partitioner: str, partition: int) -> Steps[dict[str, Any]]:
    """Have a task go on without records that its log has lost; which these are."""
    task = {"stream": stream, "partitioner": partitioner, "partition": partition}
    return _changed(session, "/v1/cluster/accept-cut", task)


def begin_deepening(session: Session, stream: str, cut_ms: int | None) -> Steps[dict[str, Any]]:
    """Let older history be built for a stream; how that stands."""
    return _changed(session, f"{stream_path(stream)}/deepening", {"cut_ms": cut_ms})


def install_deepening(session: Session, stream: str) -> Steps[None]:
    """Let what was built take over; `deepening` says how far that is."""
    yield from change(session, "POST", f"{stream_path(stream)}/deepening/install", {})


def deepening(session: Session, stream: str) -> Steps[dict[str, Any]]:
    """How the live backfill of a stream stands: state, history, behind, failure."""
    return read_table(session, f"{stream_path(stream)}/deepening")


def give_up_deepening(session: Session, stream: str) -> Steps[None]:
    """Let go of what there is of a live backfill."""
    yield from change(session, "DELETE", f"{stream_path(stream)}/deepening")


def _changed(session: Session, path: str, body: dict[str, Any] | None = None) -> Steps[dict[str, Any]]:
    answer = yield from change(session, "POST", path, body)
    return table_of(answer.content, session.place(path))
