"""`railgun score`: send events to a running server, print its replies."""

import argparse
import sys
from typing import TYPE_CHECKING

from railgun.cli.command import Command
from railgun.cli.failures import EXIT_NO
from railgun.cli.server_url import add_patience, add_url, patient_client
from railgun.cli.wording import counted

if TYPE_CHECKING:
    from railgun.cli.scoring import Outcome


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `railgun score`."""
    parser.add_argument("stream", metavar="S", help="the stream the events are of")
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        default="-",
        help="events, one JSON object per line (default: -, stdin)",
    )
    add_url(parser)
    add_patience(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print a line for each event; 1 where some were refused. Raises ClientError, UsageError, OSError."""
    from railgun.cli.scoring import score

    is_stdin = arguments.file == "-"
    with (
        open(0 if is_stdin else arguments.file, "rb", buffering=0, closefd=not is_stdin) as events,
        patient_client(arguments, "score") as client,
    ):
        outcome = score(client, arguments.stream, events, sys.stdout.buffer)
        if not outcome.events:
            # Nothing was asked: whether there is such a server and stream is to be told all the same.
            client.metrics(arguments.stream)
    if outcome.refused:
        _say_refused(outcome)
    return EXIT_NO if outcome.refused else 0


def _say_refused(outcome: "Outcome") -> None:
    refused = f"{outcome.refused:,} of {counted(outcome.events, 'event')} refused"
    print(
        f"railgun score: {refused}; the first, line {outcome.first_line}: {outcome.first_why}",
        file=sys.stderr,
    )


SCORE = Command(
    name="score",
    summary="send events to a running server, print its replies",
    description=(
        "Send events, one JSON object per line, and print a line for each, in order: its reply, or a problem\n"
        "object where the event was refused, which harms no other. Lines go out as they come in, so a pipe\n"
        "that is kept open is answered at once; memory stays bounded. Empty lines are passed over.\n\n"
        "Exit codes: 0, every event was answered; 1, some were refused (the first is told on stderr);\n"
        "2, the input or the server could not be used. A server that is starting is waited for. After a lost\n"
        "connection, sending the same file again is safe if the stream has an id field: what was taken before\n"
        "counts once."
    ),
    example="railgun score payments events.ndjson > replies.ndjson",
    configure=configure,
    execute=execute,
)
