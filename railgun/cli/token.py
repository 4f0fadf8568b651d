"""`railgun token`: makes a token for a server's configuration."""

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from railgun.cli.failures import UsageError
from railgun.cli.parser import Command

_NEW = "new"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `railgun token`."""
    parser.add_argument("action", choices=(_NEW,), help="what to do")
    parser.add_argument("name", metavar="NAME", help="whose it is, for the server's log")
    parser.add_argument(
        "--scope",
        metavar="SCOPE",
        action="extend",
        nargs="+",
        required=True,
        help="what it may do: read:S, inspect:S, score:S, define:S (a stream's name, or *), metrics, operate, *",
    )
    parser.add_argument(
        "--expires", metavar="TIME", help="after how long it ends, as in 90d (default: it does not)"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print a token, and the lines that a server knows it by. Raises UsageError."""
    from railgun.access.tokens import hash_of, new_token

    name, scopes = _checked(arguments.name, arguments.scope)
    expires = None if arguments.expires is None else _end(arguments.expires, time.time())
    token = new_token()
    print(f"{token}\n\n{_lines(name, hash_of(token.encode()), scopes, expires)}", end="")
    print(
        "railgun token: the first line is the token, which is shown this once; the others belong into the server's "
        "--config file, or the one that http.tokens_file names",
        file=sys.stderr,
    )
    return 0


def _checked(name: str, scopes: Sequence[str]) -> tuple[str, list[str]]:
    """Return the name, and each scope once. Raises UsageError."""
    from railgun.access.scopes import ScopeError, check_scope
    from railgun.access.tokens import check_name

    try:
        check_name(name)
    except ValueError as error:
        raise UsageError(f"NAME: {error}") from None
    for each in scopes:
        try:
            check_scope(each)
        except ScopeError as error:
            raise UsageError(f"--scope: {error}") from None
    return name, list(dict.fromkeys(scopes))


def _end(text: str, now_s: float) -> datetime:
    """Return the end of a token from how long it lasts, such as "90d". Raises UsageError."""
    from railgun.language.duration import DurationError, parse_duration

    try:
        lasts_ms = parse_duration(text)
        if lasts_ms == 0:
            raise UsageError(f"--expires: {text[:40]!r} is over at once; write how long it lasts, as in 90d")
        return datetime.fromtimestamp(now_s + lasts_ms / 1000, UTC)
    except DurationError:
        raise UsageError(
            f"--expires: {text[:40]!r} is not how long it lasts from now on; write days or hours, as in 90d or 12h"
        ) from None
    except (ValueError, OverflowError):
        raise UsageError(f"--expires: {text} is beyond what a date can say; leave it out instead") from None


def _lines(name: str, hashed: bytes, scopes: Sequence[str], expires: datetime | None) -> str:
    """Return the table of a token for the server's configuration."""
    quoted = ", ".join(f'"{each}"' for each in scopes)
    lines = ["[[http.tokens]]", f'name = "{name}"', f'sha256 = ["{hashed.hex()}"]', f"scopes = [{quoted}]"]
    if expires is not None:
        lines.append(f"expires = {expires:%Y-%m-%dT%H:%M:%SZ}")
    return "".join(f"{line}\n" for line in lines)


TOKEN = Command(
    name="token",
    summary="make a token that lets a program use a server",
    description=(
        "Print a new token, and the lines that describe it to a server: they hold its SHA-256, not the token.\n"
        "Programs send it as `Authorization: Bearer TOKEN`; railgun's own commands take it from --token-file\n"
        "or RAILGUN_TOKEN.\n\n"
        "To replace a token while programs use it, make another with the same name and scopes, and put its\n"
        'hash beside the old one: sha256 = ["OLD", "NEW"]. Take the old one out once nobody sends it.'
    ),
    example="railgun token new fraud-app --scope score:payments read:payments --expires 90d",
    configure=configure,
    execute=execute,
)
