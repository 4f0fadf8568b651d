"""The options for a server's address, the token and certificate for it, and how long a command waits for it."""

import argparse
import os
import stat
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from railgun.cli.failures import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from railgun.client.client import Client
    from railgun.client.errors import ClientError

TOKEN_VARIABLE = "RAILGUN_TOKEN"
_PATIENCE_S, _LISTENS_WITHIN_S = 300.0, 10.0
# How long an order to a cluster is repeated: as long as a change of a stream waits for a broker that is away.
_ORDER_S = 10.0
# A server answers a question within milliseconds.
_LATE_S = 2.0


def add_server(parser: argparse.ArgumentParser, *, has_own_key: bool = False) -> None:
    """Add --url, --token-file and the options of TLS, for `client_of`. has_own_key: the command has another --key."""
    parser.add_argument(
        "--url", metavar="U", help="the server's address (default: $RAILGUN_URL, else http://127.0.0.1:8080)"
    )
    add_credentials(parser, has_own_key=has_own_key)


def add_credentials(parser: argparse.ArgumentParser, *, has_own_key: bool = False) -> None:
    """Add --token-file (by default RAILGUN_TOKEN of the environment), --ca, --cert and --key, for `credentials_of`.

    has_own_key: the command has another --key, so the option of the private key is --cert-key.
    """
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help=f"what the server lets in: a token in a file of its own (default: ${TOKEN_VARIABLE} itself, if set)",
    )

    parser.add_argument("--ca", metavar="FILE", help="for https: the CA of the server's certificate (PEM)")
    parser.add_argument("--cert", metavar="FILE", help="for https: a certificate to show to the server (PEM)")
    parser.add_argument(
        "--cert-key" if has_own_key else "--key",
        metavar="FILE",
        dest="tls_key",
        help="its private key, if that is in a file of its own",
    )


def add_patience(parser: argparse.ArgumentParser) -> None:
    """Add --patience, for `patient_client`."""
    parser.add_argument(
        "--patience",
        metavar="SECONDS",
        type=float,
        default=_PATIENCE_S,
        help=f"how long each request is repeated to a server that is starting or full (default: {_PATIENCE_S:g}), "
        f"{_LISTENS_WITHIN_S:g} of them at most to one that does not listen yet; the last one may take 120 more",
    )


def client_of(arguments: argparse.Namespace, *, connects_within_s: float = 0.0, **more: Any) -> "Client":
    """Return a client of the server that the options name. connects_within_s, more: as for `Client`.

    Raises ClientError for a wrong address or certificate; UsageError, TokenFileError and OSError for a wrong token.
    """
    from railgun.client.address import url_from
    from railgun.client.client import Client

    return Client(
        url_from(arguments.url),
        connects_within_s=connects_within_s,
        **credentials_of(arguments),
        **more,
    )


def credentials_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return `token`, `ca`, `cert` and `key` of `Client` from the options. Raises as `token_from` does."""
    return {
        "token": token_from(arguments.token_file),
        "ca": arguments.ca,
        "cert": arguments.cert,
        "key": arguments.tls_key,
    }


def token_from(file: str | None) -> str | None:
    """Return the token in a file, or else that of the environment. Raises UsageError, TokenFileError, OSError."""
    from railgun.access.token_files import checked_token, client_token

    if file is not None:
        if os.stat(file).st_mode & (stat.S_IRGRP | stat.S_IROTH):
            print(f"railgun: {file}: others may read this token; chmod 600 {file}", file=sys.stderr)
        return client_token(file)
    given = os.environ.get(TOKEN_VARIABLE)
    try:
        return checked_token(given) if given else None
    except ValueError:
        raise UsageError(f"{TOKEN_VARIABLE}: it holds no token, as `railgun token new` prints one") from None


def patient_client(arguments: argparse.Namespace, command: str) -> "Client":
    """Return a client that waits for its server, and says on stderr why. Raises as `client_of` does."""
    patience_s: float = arguments.patience
    return client_of(
        arguments,
        patience_s=patience_s,
        connects_within_s=min(patience_s, _LISTENS_WITHIN_S),
        on_wait=_saying(command, patience_s),
    )


def ordering_client(arguments: argparse.Namespace, command: str) -> "Client":
    """Return a client for orders to a cluster. It waits 10 s at most for a server that takes none, as while the broker
    is away, and says on stderr why. Raises as `client_of` does.
    """
    return client_of(arguments, patience_s=_ORDER_S, on_wait=_saying(command, _ORDER_S))


def _saying(command: str, patience_s: float) -> "Callable[[ClientError], None]":
    """Return a function that says on stderr what a command waits for."""

    def say(why: "ClientError") -> None:
        print(f"railgun {command}: waiting, up to {patience_s:g} s: {why}", file=sys.stderr)

    return say


@contextmanager
def late_answer_said(command: str, advice: str) -> "Iterator[None]":
    """Say on stderr that the answer is late, once it is. advice: what may be the cause, or says it."""
    text = f"railgun {command}: no answer after {_LATE_S:g} s, still waiting; {advice}"
    timer = threading.Timer(_LATE_S, print, [text], {"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
