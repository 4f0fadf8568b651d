"""Tokens of every kind, and a server that notes what it looks up."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from frontend.embedded.backend import EmbeddedBackend
from frontend.scoring.scoring import Backend
from railgun.access.tokens import Token, hash_of
from tests.frontend.conftest import PAYMENTS
from tests.frontend.serving import Server, server

OWN, FOREIGN, UNKNOWN = "payments", "ledger_x", "nowhere1"
"""Streams: one that tokens are for, one that they are not for, and one that there is not. Their names are as long."""
FOREIGN_STREAM = f'\n[streams.{FOREIGN}]\n[streams.{FOREIGN}.fields]\nsecret_field = "string"\n'
LOOK_UPS = frozenset(name for name in vars(Backend) if not name.startswith("_")) - {
    "readiness",
    "close",
    "unanswered",
}


@dataclass(frozen=True)
class Kind:
    """A way to ask. given: what stands in the Authorization headers."""

    name: str
    given: tuple[str, ...]


def secret(name: str) -> str:
    return f"railgun_{name}"


def bearer(name: str) -> str:
    return f"Bearer {secret(name)}"


def token(name: str, *scopes: str, **more: Any) -> Token:
    return replace(Token(name, (hash_of(secret(name).encode()),), scopes), **more)


NOBODY = (
    Kind("none", ()),
    Kind("wrong", (bearer("wrong"),)),
    Kind("expired", (bearer("expired"),)),
    Kind("rotated out", (bearer("rotated-1"),)),
    Kind("hash in place of the token", (f"Bearer {hash_of(secret('all').encode()).hex()}",)),
    Kind("two headers", (bearer("all"), bearer("all"))),
    Kind("another scheme", ("Basic " + secret("all"),)),
    Kind("no scheme", (secret("all"),)),
    Kind("empty", ("Bearer ",)),
)
"""Those that no token stands behind."""


def tokens() -> tuple[Token, ...]:
    """Of `all` everything may be done; `rotated` had another hash before; `few` may do nothing with a stream."""
    return (
        token("all", "*"),
        token("expired", "*", expires_s=time.time() - 1),
        token(
            "rotated",
            "*",
            hashes=(hash_of(secret("rotated-2").encode()), hash_of(secret("rotated-3").encode())),
        ),
        *(token(f"{kind}-own", f"{kind}:{OWN}") for kind in ("read", "inspect", "score", "define")),
        *(token(f"{kind}-all", f"{kind}:*") for kind in ("read", "inspect", "score", "define")),
        token("metrics", "metrics"),
        token("operate", "operate"),
        token("remove-own", f"define:{OWN}", "operate"),
        token("reads-own-scores-all", f"read:{OWN}", "score:*"),
    )


class Watched(EmbeddedBackend):
    """looked_up: what was asked of it, by the name of the method."""

    def __getattribute__(self, name: str) -> Any:
        if name in LOOK_UPS:
            object.__getattribute__(self, "__dict__").setdefault("looked_up", []).append(name)
        return object.__getattribute__(self, name)


@contextmanager
def guarded(folder: Path, monkeypatch: Any, **http: Any) -> Iterator[Server]:
    """A server with tokens and two streams. Its client sends the token that may do everything."""
    monkeypatch.setattr("tests.frontend.serving.EmbeddedBackend", Watched)
    with server(folder, **{"tokens": tokens(), **http}) as running:
        running.define(PAYMENTS + FOREIGN_STREAM)
        running.client.headers["Authorization"] = bearer("all")
        yield running


def looked_up(running: Server) -> list[str]:
    """What was asked of the backend since this was called before."""
    noted: list[str] = running.backend.__dict__.setdefault("looked_up", [])
    found, noted[:] = noted[:], []
    return found
