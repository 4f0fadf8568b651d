"""`python -m railgun.node.leader`: a node's part in the group of nodes, started by the node's supervisor."""

import argparse
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict

import msgspec

from railgun.cluster.health import ClusterHealth
from railgun.config.loading import settings_of
from railgun.logs.setup import logging_as
from railgun.messaging.errors import TransportError, TransportRefusedError
from railgun.node.child_arguments import child_parser
from railgun.node.ending import Ending
from railgun.node.identity import NodeRefusedError, node_identity
from railgun.node.leader.ended_units import EndedUnits
from railgun.node.leader.leading import Leading
from railgun.node.leader.process import LeaderPlace, run_leader
from railgun.node.parent import Parent
from railgun.node.relay import Received, Serving
from railgun.node.signals import stop_when_asked
from railgun.registry.errors import RegistryError

# This process loses nothing if it is ended, so a broker that is away must not keep its node from ending.
_OVER_S = 5.0
# How often the cluster's health is computed: with very many tasks that takes a while.
_HEALTH_S = 10.0
_encode = msgspec.json.Encoder().encode


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = child_parser("railgun.node.leader", __doc__)
    parser.add_argument("--release", required=True)
    parser.add_argument("--began-ms", type=int, required=True)
    parser.add_argument("--again", action="store_true")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Run until asked to stop. Returns 0; or 1 after an error, when the supervisor starts the process again."""
    arguments = _arguments(words)
    settings = settings_of(arguments.config, arguments.broker)
    stopped = threading.Event()
    stop_when_asked(stopped)
    ended = EndedUnits()
    # The newest message of the transfer process.
    serving = deque([Serving()], maxlen=1)

    def take(received: Received) -> None:
        if isinstance(received.message, Serving):
            serving.append(received.message)

    parent = Parent(stopped, unit_ended=ended.note, take=take)
    identity = node_identity(arguments.node_folder, settings.cluster.node_name)
    place = LeaderPlace(
        arguments.node_folder,
        identity,
        arguments.units,
        arguments.release,
        arguments.began_ms,
        runs_already=arguments.again,
    )

    def say(**what: object) -> None:
        parent.write(_encode({"version": 1, **what}) + b"\n")

    said: dict[str, object] = {}
    health: ClusterHealth | None = None
    clock_ahead_ms: int | None = None
    due_s = 0.0

    def tell(leading: Leading) -> None:
        nonlocal said, health, clock_ahead_ms, due_s
        now_s = time.monotonic()
        if now_s >= due_s:
            due_s, health = now_s + _HEALTH_S, leading.health()
            clock_ahead_ms = leading.clock_ahead_ms
        cluster = asdict(health) if health is not None and leading.leads else None
        news: dict[str, object] = {"leads": leading.leads, "plan": leading.plan.epoch, "cluster": cluster}
        news["clock_ahead_ms"] = clock_ahead_ms
        if news != said:
            said = news
            say(ready=True, **news)

    ending = Ending(stopped, "the leader's process", _OVER_S, lambda code: os._exit(0))
    with logging_as(settings.logging.level, settings.logging.format), ending:
        try:
            run_leader(settings, place, stopped, lambda: say(ready=True), tell, ended, lambda: serving[0])
        except (NodeRefusedError, TransportRefusedError) as error:
            # The supervisor stops the node, and this process with it.
            say(refused=str(error))
            stopped.wait()
        except (TransportError, RegistryError, OSError, ValueError) as error:
            logging.getLogger("railgun.node").error("the node's part in the cluster ends: %s", error)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
