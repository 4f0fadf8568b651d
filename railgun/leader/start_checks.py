"""Refuses a node whose name another node has, and one that would run beside nodes of a release without copies."""

import threading
import time
from collections.abc import Callable

from railgun.cluster.copies import CopyState
from railgun.cluster.records import NodeRecord, RecordError, decode_said
from railgun.cluster.reports import ReportError, decode_report
from railgun.messaging.to_the_end import read_to_the_end
from railgun.messaging.transport import TopicPartition, Transport
from railgun.unit.identity import Identity

_AGAIN_S = 0.5


# Nodes of releases without copies reported each task at least every 5 s. What is older than a minute is left over: the
# clocks of the broker and of this machine do not differ by as much.
_REPORTS_S, _LEFT_OVER_S = 6.0, 60.0
_BYTES = 1 << 20


class NodeRefusedError(Exception):
    """The node cannot take part. The text says why, and what to do."""


def check_name(
    transport: Transport,
    nodes: TopicPartition,
    members: Callable[[], set[str]],
    identity: Identity,
    within_s: float,
    stopped: threading.Event,
) -> None:
    """Return once no other node that lives has the name of this one, which is not a member yet.

    members: returns the names of the nodes that live.
    within_s: a node that died may be a member for so long, in seconds. After that the name is refused.
    Raises NodeRefusedError, and TransportError.
    """
    host = _host_of_another(transport, nodes, identity)
    waited_s = 0.0
    while host is not None and identity.name in members() and not stopped.wait(_AGAIN_S):
        waited_s += _AGAIN_S
        if waited_s > within_s:
            raise NodeRefusedError(
                f"cluster.node_name: another node, on {host}, is called {identity.name}; give this one a name of "
                "its own"
            )


def check_releases(
    transport: Transport,
    positions: TopicPartition,
    stopped: threading.Event,
    now_s: Callable[[], float] = time.time,
) -> None:
    """Return if no node of a release without copies runs: both would have the same tasks.

    positions: where units report.
    now_s: returns the time, in seconds since 1970.
    Raises NodeRefusedError, and TransportError.
    """
    node, newest = _newest_of_version_1(transport, positions, None)
    if node is None:
        return
    appended_s = transport.read(*positions, newest, 1, _BYTES).appended_ms / 1000
    if now_s() - appended_s > _LEFT_OVER_S:
        return
    waited_s = 0.0
    while waited_s < _REPORTS_S and not stopped.wait(_AGAIN_S):
        waited_s += _AGAIN_S
        node, _ = _newest_of_version_1(transport, positions, newest + 1)
        if node is not None:
            raise NodeRefusedError(
                f"node {node} runs a release without copies of tasks; stop all nodes of that release, then start this "
                "one"
            )


def _newest_of_version_1(
    transport: Transport, positions: TopicPartition, offset: int | None
) -> tuple[str | None, int]:
    """The node of the newest report of version 1 of a task that it runs, and its offset; None if there is none."""
    node, newest = None, -1
    for fetched in read_to_the_end(transport, positions, offset):
        for place, record in zip(fetched.offsets.tolist(), fetched.values(), strict=True):
            try:
                report = decode_report(record)
            except ReportError:
                continue
            # One that has stopped says so last.
            if report.version == 1 and report.copies[0].state is not CopyState.CLOSED:
                node, newest = report.node, place
    return node, newest


def _host_of_another(transport: Transport, nodes: TopicPartition, identity: Identity) -> str | None:
    """The machine of the node that had the name last, if its data folder is another one."""
    host = None
    for fetched in read_to_the_end(transport, nodes):
        for record in fetched.values():
            try:
                node = decode_said(record)
            except RecordError:
                continue
            if isinstance(node, NodeRecord) and node.name == identity.name:
                host = None if node.folder == identity.folder else node.host
    return host
