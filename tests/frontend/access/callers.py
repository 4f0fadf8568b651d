"""Tokens of every kind, and a server that notes what it looks up."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from frontend.backend.catalogue import StreamCatalogue
from frontend.backend.cluster import ClusterOperations
from frontend.backend.deepenings import DeepeningOperations
from frontend.embedded.backend import EmbeddedBackend
from frontend.problems import refusal
from frontend.scoring.scoring import Scoring
from railgun.access.tokens import Token, hash_of
from tests.frontend.conftest import PAYMENTS
from tests.frontend.serving import Server, server

OWN, FOREIGN, UNKNOWN = "payments", "ledger_x", "nowhere1"
"""Streams: one that tokens are for, one that they are not for, and one that there is not. Their names are as long."""
FOREIGN_STREAM = f'\n[streams.{FOREIGN}]\n[streams.{FOREIGN}.fields]\nsecret_field = "string"\n'
LOOK_UPS = frozenset(
    name
    for part in (Scoring, StreamCatalogue, ClusterOperations, DeepeningOperations)
    for name in vars(part)
    if not name.startswith("_")
)


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


class _Noted:
    """A part of a backend that notes which of its methods are looked up, for a call."""

    def __init__(self, part: object, looked_up: list[str]) -> None:
        vars(self).update(part=part, looked_up=looked_up)

    def __getattr__(self, name: str) -> Any:
        if name in LOOK_UPS:
            self.looked_up.append(name)
        return getattr(self.part, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.part, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.part, name)


class _NoNodes:
    """Refuses all that a cluster can be asked for."""

    def __getattr__(self, name: str) -> Any:
        async def refuse(*_: Any, **more: Any) -> Any:
            raise refusal(409, "there are no nodes")

        return refuse


class Watched(EmbeddedBackend):
    """looked_up: what was asked of its parts, by the name of the method."""

    def __init__(self, *opening: Any, **more: Any) -> None:
        super().__init__(*opening, **more)
        self.looked_up: list[str] = []
        parts: dict[str, object] = {**vars(self), "cluster": _NoNodes()}
        for name in ("scoring", "catalogue", "cluster", "deepenings"):
            setattr(self, name, _Noted(parts[name], self.looked_up))


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
    assert isinstance(running.backend, Watched)
    noted = running.backend.looked_up
    found, noted[:] = noted[:], []
    return found
