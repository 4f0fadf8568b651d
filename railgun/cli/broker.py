"""`railgun broker`: a local Kafka broker for development."""

import argparse
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from railgun.cli.failures import EXIT_NO, UsageError
from railgun.cli.parser import Command
from railgun.wording import counted

if TYPE_CHECKING:
    from railgun.broker.local import Status

ACTIONS = ("start", "stop", "status", "topic")
_PORT, _PARTITIONS_MAX = 9092, 1_000


def _default_folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "railgun" / "broker"


def _number(least: int, most: int) -> Callable[[str], int]:
    """Return what reads a whole number of this range."""

    def read(text: str) -> int:
        number = int(text) if re.fullmatch("[0-9]{1,9}", text, re.ASCII) else -1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(
                f"it is a whole number from {least} to {most:,}, not {text[:80]!r}"
            )
        return number

    return read


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `railgun broker`."""
    parser.add_argument("action", choices=ACTIONS, help="what to do")
    parser.add_argument("topic", metavar="TOPIC", nargs="?", help="the topic to make, for `topic`")
    parser.add_argument(
        "--port",
        type=_number(0, 65_535),
        default=_PORT,
        help=f"for `start`: where it listens on loopback (default: {_PORT}; 0: a free one)",
    )
    parser.add_argument(
        "--data", metavar="DIR", help=f"its topics, log and pid file (default: {_default_folder()})"
    )
    parser.add_argument(
        "--partitions",
        metavar="N",
        type=_number(1, _PARTITIONS_MAX),
        default=1,
        help="for `topic`: how many the topic has (default: 1)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Start the broker, stop it, make a topic, or show the status. Returns 1 if the status is asked for and no broker
    answers.

    Raises UsageError, BrokerError, OSError.
    """
    from railgun.broker.local import LocalBroker

    if arguments.action == "topic" and arguments.topic is None:
        raise UsageError("name the topic to make, as in railgun broker topic shop.orders")
    if arguments.action != "topic" and arguments.topic is not None:
        raise UsageError(f"`{arguments.action}` takes no argument, and {arguments.topic[:80]!r} is one")
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
    if arguments.action == "topic" and not broker.make_topic(arguments.topic, arguments.partitions):
        _say(f"{arguments.topic} is there already, with {counted(arguments.partitions, 'partition')}")
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
        "none is running. `topic` makes a topic, as clients cannot by writing to it, with --partitions N of\n"
        "its own; one that is there already with as many is left as it is."
    ),
    example="railgun broker start --port 9092",
    configure=configure,
    execute=execute,
)
