"""Reads the files that hold tokens: the server's, `http.tokens_file`, and the file with a client's own token."""

import os
import stat
import tomllib
from pathlib import Path

from railgun.access.tokens import Token, TokenError, read_tokens

FILE_BYTES_MAX = 16 << 20
CLIENT_FILE_BYTES_MAX = 4_096
_ROOT = 0


class TokenFileError(Exception):
    """A file with tokens cannot be used. The message names the file and the remedy, never its content."""

    def __init__(self, file: Path | str, message: str) -> None:
        super().__init__(f"{file}: {message}")


def check_nobody_else_writes(file: Path | str) -> None:
    """Raises TokenFileError if other users may write a file, because they could give themselves access; OSError."""
    found = os.stat(file)
    if found.st_mode & stat.S_IWOTH:
        raise TokenFileError(file, f"everybody may write it, and access depends on it; chmod o-w {file}")
    if found.st_uid not in (_ROOT, os.geteuid()):
        raise TokenFileError(
            file,
            f"it belongs to another user ({found.st_uid}), and access depends on it; chown it to this one",
        )


def read_tokens_file(file: Path | str) -> tuple[Token, ...]:
    """Reads the tokens of a TOML file with [[http.tokens]] and nothing else. Raises TokenFileError, OSError."""
    check_nobody_else_writes(file)
    with open(file, "rb") as opened:
        content = opened.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        raise TokenFileError(file, f"it has more than {FILE_BYTES_MAX} bytes; is it the right one?")
    try:
        tables = tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise TokenFileError(file, f"it is no UTF-8 text (byte {error.start})") from None
    # The library also raises ValueError if a number is too long, and RecursionError if tables nest too deep.
    except (ValueError, RecursionError) as error:
        raise TokenFileError(file, f"it is no TOML: {error}") from None
    http = tables.get("http")
    if set(tables) != {"http"} or not isinstance(http, dict) or set(http) != {"tokens"} or not http["tokens"]:
        raise TokenFileError(file, "tokens belong here as [[http.tokens]], at least one, and nothing else")
    try:
        return read_tokens(http["tokens"])
    except TokenError as error:
        raise TokenFileError(file, f"http.tokens.{error}") from None


def client_token(file: Path | str) -> str:
    """Reads a file that holds one token and nothing else. Raises TokenFileError, OSError."""
    with open(file, "rb") as opened:
        content = opened.read(CLIENT_FILE_BYTES_MAX + 1)
    try:
        return checked_token(content.decode("ascii"))
    except ValueError:
        raise TokenFileError(
            file, "it holds no token: one line belongs there, as `railgun token new` prints it"
        ) from None


def checked_token(text: str) -> str:
    """Returns a token without the space around it. Raises ValueError, without the token, if it cannot be sent."""
    token = text.strip()
    if (
        not token
        or len(token) > CLIENT_FILE_BYTES_MAX
        or not token.isascii()
        or not token.isprintable()
        or " " in token
    ):
        raise ValueError("no token")
    return token
