"""`railgun broker`: a local Kafka broker for development."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from railgun.cli.failures import EXIT_NO, UsageError
from railgun.cli.parser import Command

if TYPE_CHECKING:
    from railgun.broker.local import Status

ACTIONS = ("start", "stop", "status", "topic")
_PORT, _PARTITIONS_MAX = 9092, 1_000


def _default_folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "railgun" / "broker"


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65_535:
        raise ValueError(text)
    return number


_port.__name__ = "port"


def _partitions(text: str) -> int:
    number = int(text)
    if not 1 <= number <= _PARTITIONS_MAX:
        raise ValueError(text)
    return number


_partitions.__name__ = "number of partitions"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `railgun broker`."""
    parser.add_argument("action", choices=ACTIONS, help="what to do")
    parser.add_argument("topic", metavar="TOPIC", nargs="?", help="the topic to make, for `topic`")
    parser.add_argument(
        "--port",
        type=_port,
        default=_PORT,
        help=f"where it listens on loopback (default: {_PORT}; 0: a free one)",
    )
    parser.add_argument(
        "--data", metavar="DIR", help=f"its topics, log and pid file (default: {_default_folder()})"
    )
    parser.add_argument(
        "--partitions", metavar="N", type=_partitions, default=1, help="of a topic to make (default: 1)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Start the broker, stop it, make a topic, or show the status. Returns 1 if the status is asked for and no broker
    answers.

    Raises UsageError, BrokerError, OSError.
    """
    from railgun.broker.local import LocalBroker

    if (arguments.action == "topic") != (arguments.topic is not None):
        raise UsageError("name a topic with `topic`, and with nothing else: railgun broker topic shop.orders")
    broker = LocalBroker(Path(arguments.data) if arguments.data else _default_folder())
    if arguments.action == "start":
        _show(broker.start(arguments.port, _say), arguments.json)
        return 0
    if arguments.action == "stop":
        stopped = broker.folder.is_dir() and broker.stop()
        if arguments.json:
            print(json.dumps({"data": str(broker.folder), "stopped": stopped}))
        else:
            print("stopped" if stopped else f"no broker of {broker.folder} is running")
        return 0
    if arguments.action == "topic":
        broker.make_topic(arguments.topic, arguments.partitions)
    status = broker.status()
    if status is None:
        if arguments.json:
            print(json.dumps({"data": str(broker.folder), "running": False}))
        else:
            print(f"no broker of {broker.folder} is running; {_remedy(arguments.data)}")
        return EXIT_NO
    _show(status, arguments.json)
    return EXIT_NO if status.topics is None else 0


def _remedy(data: str | None) -> str:
    if data is not None:
        return f"start it with `railgun broker start --data {data}`"
    return "start it with `railgun broker start`, or name the folder of another one with --data"


def _say(line: str) -> None:
    print(f"railgun broker: {line}", file=sys.stderr, flush=True)


def _show(status: "Status", as_json: bool) -> None:
    from railgun.cli.wording import duration_text
    from railgun.wording import counted

    if as_json:
        report = {
            "running": True,
            "address": status.address,
            "pid": status.pid,
            "data": str(status.data),
            "uptime_s": round(status.uptime_s, 3),
            "topics": None if status.topics is None else dict(status.topics),
        }
        print(json.dumps(report))
        return
    lines = [
        f"address  {status.address}",
        f"process  {status.pid}, for {duration_text(status.uptime_s)}",
        f"data     {status.data}",
    ]
    if status.topics is None:
        lines.append(f"it does not answer; see {status.data / 'broker.log'}")
    else:
        lines.append(f"topics   {len(status.topics):,}")
        lines += [f"  {name}: {counted(n, 'partition')}" for name, n in sorted(status.topics.items())]
    print("\n".join(lines))


BROKER = Command(
    name="broker",
    summary="start, stop or see a local Kafka broker for development, or make a topic there",
    description=(
        "A Kafka broker of one node on loopback, made of Kafka's own artifacts, for development. The first\n"
        "start fetches them into the cache (RAILGUN_CACHE_DIR, or ~/.cache/railgun): 44 MB. It needs Java 17.\n\n"
        "`start` returns when the broker answers; it runs on until `stop`. Topics stay in the data folder.\n"
        "`status` says the address, the process, the data folder and the topics; the exit code is 1 where\n"
        "none is running. `topic` makes a topic, as clients cannot by writing to it."
    ),
    example="railgun broker start --port 9092",
    configure=configure,
    execute=execute,
)
