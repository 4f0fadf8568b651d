"""Refuses a node's name that another node has."""

import threading
from collections.abc import Callable

from railgun.cluster.records import NodeRecord, RecordError, decode_said
from railgun.messaging.to_the_end import read_to_the_end
from railgun.messaging.transport import TopicPartition, Transport
from railgun.unit.identity import Identity

_AGAIN_S = 0.5


class NameInUseError(Exception):
    """Another node that lives has the name."""


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
    Raises NameInUseError, and TransportError.
    """
    host = _host_of_another(transport, nodes, identity)
    waited_s = 0.0
    while host is not None and identity.name in members() and not stopped.wait(_AGAIN_S):
        waited_s += _AGAIN_S
        if waited_s > within_s:
            raise NameInUseError(
                f"cluster.node_name: another node, on {host}, is called {identity.name}; give this one a name of "
                "its own"
            )


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
