"""`railgun apply`: bring the streams and metrics of a definitions file to a running server."""

import argparse
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from railgun.cli.failures import EXIT_NO
from railgun.cli.parser import Command
from railgun.cli.server_url import add_patience, add_server, patient_client
from railgun.wording import listed

if TYPE_CHECKING:
    from railgun.catalog.catalog import Difference
    from railgun.client.applying import Plan
    from railgun.client.client import Client

_POLL_S = 0.2
_UNREAD = "its input topics are not read: this server has no broker"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `railgun apply`."""
    parser.add_argument("definitions", metavar="DEFINITIONS", help="a definitions file (TOML)")
    add_server(parser)
    add_patience(parser)
    parser.add_argument(
        "--no-wait", action="store_true", help="return at once, while new metrics are still warming"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Create what is missing. Returns 1 if something differs; nothing has changed then.

    Raises DefinitionError, ClientError, OSError.
    """
    from railgun.catalog.definitions import load_definitions
    from railgun.catalog.errors import DefinitionError
    from railgun.client.applying import plan

    definitions = load_definitions(arguments.definitions)
    if not definitions.streams:
        raise DefinitionError((), "the file defines no stream", file=arguments.definitions)
    with patient_client(arguments, "apply") as client:
        plan_of_file = plan(client, definitions)
        if plan_of_file.differences:
            return _say_differences(plan_of_file.differences)
        for stream in plan_of_file.unread:
            print(f"railgun apply: WARNING: {stream}: {_UNREAD}", file=sys.stderr)
        _carry_out(client, plan_of_file)
        if not plan_of_file.changes:
            print("nothing to do: all of it is registered")
        if not arguments.no_wait:
            _wait(client, list(definitions.streams))
    return 0


def _carry_out(client: "Client", planned: "Plan") -> None:
    """Make the changes of a plan and print what was created. Raises ClientError."""
    from railgun.client.applying import carry_out
    from railgun.client.errors import ClientError

    made: list[str] = []
    try:
        for what in carry_out(client, planned):
            print(f"created {what}", flush=True)
            made.append(what)
    except ClientError:
        if made:
            print(f"railgun apply: not all was applied; what stays: {listed(made)}", file=sys.stderr)
        raise


def _say_differences(differences: "Sequence[Difference]") -> int:
    for each in differences:
        print(f"differs: {each}")
    remedy = "drop what is registered"
    if all(each.can_change for each in differences):
        streams = listed(
            [f"/v1/streams/{each}" for each in dict.fromkeys(each.stream for each in differences)]
        )
        remedy = f"change what is registered: PATCH {streams} with what differs (client.evolve_stream)"
    print(f"railgun apply: nothing was applied; change the definitions, or {remedy}", file=sys.stderr)
    return EXIT_NO


def _wait(client: "Client", streams: Sequence[str]) -> None:
    """Show a bar until no metric of the streams is warming."""
    from railgun.cli.progress import WarmingProgress
    from railgun.client.applying import filled

    with WarmingProgress() as progress:
        for stream in streams:
            while True:
                share, warming = filled(client, stream)
                progress.at(stream, share, len(warming))
                if not warming:
                    break
                time.sleep(_POLL_S)


APPLY = Command(
    name="apply",
    summary="bring the streams and metrics of a definitions file to a running server",
    description=(
        "Create the streams, fields and metrics of a file that a server does not have yet, and return once\n"
        "the new metrics are warm: until then they are null in replies, and listed there as warming.\n"
        "The file defines the streams of its metrics, those too that the server has.\n"
        "What is registered and not in the file is left alone. Where something differs, nothing is changed,\n"
        "each difference is printed, and the exit code is 1."
    ),
    example="railgun apply definitions.toml --url http://127.0.0.1:8080",
    configure=configure,
    execute=execute,
)
