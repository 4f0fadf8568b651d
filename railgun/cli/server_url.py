"""The options that say which server a command talks to, and how long it waits for that."""

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from railgun.client.client import Client

_PATIENCE_S, _LISTENS_WITHIN_S = 300.0, 10.0


def add_url(parser: argparse.ArgumentParser) -> None:
    """--url, with the environment's RAILGUN_URL and this machine's port 8080 behind it."""
    parser.add_argument(
        "--url", metavar="U", help="the server's address (default: $RAILGUN_URL, else http://127.0.0.1:8080)"
    )


def add_patience(parser: argparse.ArgumentParser) -> None:
    """--patience, for `patient_client`."""
    parser.add_argument(
        "--patience",
        metavar="SECONDS",
        type=float,
        default=_PATIENCE_S,
        help=f"how long to wait for a server that is starting or full (default: {_PATIENCE_S:g}), "
        f"{_LISTENS_WITHIN_S:g} of them at most for one that does not listen yet",
    )


def patient_client(arguments: argparse.Namespace, command: str) -> "Client":
    """A client that waits for its server, and says on stderr why. Raises ClientError for what is no address."""
    from railgun.client.client import Client, url_from
    from railgun.client.errors import ClientError

    patience_s: float = arguments.patience

    def say(why: ClientError) -> None:
        print(f"railgun {command}: waiting, up to {patience_s:g} s: {why}", file=sys.stderr)

    return Client(
        url_from(arguments.url),
        patience_s=patience_s,
        connects_within_s=min(patience_s, _LISTENS_WITHIN_S),
        on_wait=say,
    )
