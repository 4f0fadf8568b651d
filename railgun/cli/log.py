"""`railgun log`: shows who changed what in the catalogue."""

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any

from railgun.cli.parser import Command
from railgun.cli.server_url import add_server, client_of
from railgun.cli.wording import table_lines
from railgun.wording import one_line, time_text

_LIMIT = 100
_WHAT_WIDTH = 100
_HEAD = ("place", "time", "who", "from", "of", "what")


def as_text(changes: Sequence[Mapping[str, Any]]) -> str:
    """Return a table for a terminal."""
    if not changes:
        return "no changes\n"
    return "\n".join(table_lines([_HEAD, *map(_row, changes)])) + "\n"


def _row(change: Mapping[str, Any]) -> tuple[str, ...]:
    at_ms, name = change["at_ms"], change["name"]
    return (
        f"{change['place']:,}",
        "-" if at_ms is None else time_text(at_ms),
        change["who"] or "-",
        change["from"] or "-",
        change["stream"] if name is None else f"{change['stream']}/{name}",
        one_line(change["what"], _WHAT_WIDTH),
    )


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `railgun log`."""
    parser.add_argument(
        "--limit",
        metavar="N",
        type=int,
        default=_LIMIT,
        help=f"how many at most, up to 1,000 (default: {_LIMIT})",
    )
    parser.add_argument(
        "--before",
        metavar="PLACE",
        type=int,
        help="only changes of a smaller place: the last one shown before",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_server(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the changes of the catalogue. Raises ClientError."""
    with client_of(arguments) as client:
        changes = client.change_log(arguments.limit, arguments.before)
    if arguments.json:
        print(json.dumps(changes, indent=2, ensure_ascii=False))
    else:
        print(as_text(changes), end="")
    return 0


LOG = Command(
    name="log",
    summary="who changed what: streams and metrics, the newest change first",
    description=(
        "Show the changes of streams and metrics that a server's catalogue has kept, the newest first: when\n"
        "each was made, by which token and from which address. There is no name where the server had no\n"
        "tokens; neither name nor address where a command wrote by itself, as `railgun backfill` does, or a\n"
        "server from its --definitions; and nothing of changes by releases that did not keep it. A token\n"
        "needs the scope `operate`."
    ),
    example="railgun log --limit 20",
    configure=configure,
    execute=execute,
)
