"""`railgun drain` and `railgun undrain`: empty a node of a cluster, and use it again."""

import argparse
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from railgun.cli.failures import EXIT_NO
from railgun.cli.parser import Command
from railgun.cli.server_url import add_server, ordering_client
from railgun.wording import counted

if TYPE_CHECKING:
    from railgun.client.client import Client

_POLL_S = 0.5
# If a drain has not got on for this long, the command says what it waits for; then again each time after as long.
_SAY_S = 10.0
_CONFLICT = 409


def _configure_drain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node", metavar="NODE", help="its name, as `railgun cluster` shows it")
    parser.add_argument("--no-wait", action="store_true", help="return once the order is accepted")
    parser.add_argument(
        "--fewer-copies", action="store_true", help="let tasks have fewer copies where too few nodes are left"
    )
    add_server(parser)


def _configure_undrain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node", metavar="NODE", help="its name, as `railgun cluster` shows it")
    add_server(parser)


def _drain(arguments: argparse.Namespace) -> int:
    from railgun.client.errors import ProblemError

    name: str = arguments.node
    with ordering_client(arguments, "drain") as client:
        try:
            node = client.drain(name, fewer_copies=arguments.fewer_copies)
        except ProblemError as error:
            if error.status != _CONFLICT:
                raise
            print(f"railgun drain: {error.detail}", file=sys.stderr)
            return EXIT_NO
        if arguments.no_wait and node.get("copies"):
            print(f"{name} is draining: {counted(node['copies'], 'copy', 'copies')} left")
            return 0
        return _followed(client, name, node)


def _followed(client: "Client", name: str, node: Mapping[str, Any]) -> int:
    """Show a bar until a node is empty."""
    from railgun.cli.progress import PiecesProgress

    most = left = node.get("copies", 0)
    told_s = time.monotonic()
    with PiecesProgress() as progress:
        while left:
            progress.at(f"draining {name}", most - left, most)
            time.sleep(_POLL_S)
            node = _node_of(client.cluster(), name)
            if node.get("state") in ("live", "away"):
                print(
                    f"railgun drain: {name} is used again: somebody has taken the order back", file=sys.stderr
                )
                return EXIT_NO
            before, left = left, node.get("copies", 0)
            most = max(most, left)
            if left < before:
                told_s = time.monotonic()
            elif time.monotonic() - told_s >= _SAY_S:
                told_s = time.monotonic()
                why = "; ".join(node.get("waits") or ["its copies are handed over"])
                print(f"railgun drain: {counted(left, 'copy', 'copies')} left: {why}", file=sys.stderr)
    rest = "it may be stopped" if node.get("alive", True) else "it is away, and its copies are on other nodes"
    print(f"{name} is drained: {rest}; `railgun undrain {name}` has it used again")
    return 0


def _node_of(cluster: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return next((node for node in cluster["nodes"] if node["name"] == name), {})


def _undrain(arguments: argparse.Namespace) -> int:
    with ordering_client(arguments, "undrain") as client:
        node = client.undrain(arguments.node)
    if node.get("was_drained", True):
        when = f": {node['state']}" if node.get("alive", True) else " once it is back: it is away"
        print(f"{arguments.node} is used again{when}")
    else:
        print(f"{arguments.node} was not drained: nothing is changed; it is {node['state']}")
    return 0


DRAIN = Command(
    name="drain",
    summary="empty a node of a cluster, so that it can be stopped",
    description=(
        "Have copies of a node's tasks made on other nodes; once these have caught up, others answer in\n"
        "its place, and its own copies go. No task has fewer copies meanwhile. Returns once the node has\n"
        "none; it can then be stopped, and gets no copies before `railgun undrain`. A short restart needs\n"
        "no drain.\n\n"
        "The exit code is 0 when the node has no copies (with --no-wait: when the order is accepted), 1 where\n"
        "the order is refused, as too few nodes are left for all copies, or is taken back meanwhile, and 2\n"
        "for whatever else is wrong: there is no such node, no server, no node that leads, or the broker does\n"
        "not answer for 10 s."
    ),
    example="railgun drain node-2",
    configure=_configure_drain,
    execute=_drain,
)
UNDRAIN = Command(
    name="undrain",
    summary="use a node of a cluster again that was drained",
    description=(
        "Let a node have copies of tasks again. Those that are still on it stay. A node that was not drained\n"
        "is left as it is, which is said; the exit code is 0 then too, and 2 where there is no such node."
    ),
    example="railgun undrain node-2",
    configure=_configure_undrain,
    execute=_undrain,
)
