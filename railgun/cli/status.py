"""`railgun status`: what a running server holds, and how it stands."""

import argparse
import json

from railgun.cli.command import Command
from railgun.cli.server_url import add_url


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `railgun status`."""
    add_url(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Print it. Raises ClientError."""
    from railgun.cli.status_text import as_text
    from railgun.client.client import Client, url_from

    with Client(url_from(arguments.url)) as client:
        status = client.status()
    print(
        json.dumps(status, indent=2) if arguments.json else as_text(status),
        end="\n" if arguments.json else "",
    )
    return 0


STATUS = Command(
    name="status",
    summary="what a running server holds: streams, metrics, tasks, disk",
    description=(
        "Show the streams of a running server, their metrics (how far those that are warming have come), the\n"
        "tasks with the offsets they are at and the one their last checkpoint covers, and the disk."
    ),
    example="railgun status --url http://127.0.0.1:8080",
    configure=configure,
    execute=execute,
)
