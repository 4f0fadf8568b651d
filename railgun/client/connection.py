"""How both clients use HTTP: the settings of the connections, and what an outcome of theirs means."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import httpx

from railgun.access.token_files import checked_token
from railgun.client.address import checked_url, is_local
from railgun.client.errors import (
    ClientError,
    ConnectionLostError,
    RefusedConnectionError,
    UnreachableError,
)
from railgun.client.steps import Answer, Failure, Request, Session
from railgun.client.tls import client_context, tls_failure

TIMEOUT_S, PATIENCE_S, CONNECTS_WITHIN_S, CONNECTIONS = 120.0, 60.0, 10.0, 100

_CONNECT_TIMEOUT_S = 10.0
# Below the time after which a server closes an idle connection (http.keep_alive_s, 75 s): a request that crosses the
# closing would be lost.
IDLE_S = 5.0
"""For how long a connection is kept that nobody uses."""


class Connected(ABC):
    """What `Client` and `AsyncClient` have in common: their parameters, and the address."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        ca: Path | str | None = None,
        cert: Path | str | None = None,
        key: Path | str | None = None,
        timeout_s: float = TIMEOUT_S,
        patience_s: float = PATIENCE_S,
        connects_within_s: float = CONNECTS_WITHIN_S,
        streams_with_ids: Collection[str] = (),
        connections: int = CONNECTIONS,
        on_wait: Callable[[ClientError], None] | None = None,
    ) -> None:
        """
        token: for a server that has tokens.
        ca: a file with the certificates of the authorities to trust, in place of the machine's.
        cert, key: files with the certificate to show, and its private key if that is apart.
        timeout_s: for the answer to a request.
        patience_s: how long a call goes on in all: what the server had no room for, or was starting (429 and 503 that
            name a time), is sent again, and so are events that may have been taken, if their stream has an id field.
        connects_within_s: how much of that is for a server that does not listen.
        streams_with_ids: streams that are known to have an id field, and to remember as many ids (`dedup_events`) as a
            request has events. Others are looked up when that is needed, for which the token has to have `read`.
        connections: how many requests go on at once; more wait.
        on_wait: called with the reason, once a call has waited for a second.

        Raises ClientError.
        """
        if isinstance(streams_with_ids, str):
            raise ClientError(f"streams_with_ids: name streams in a list, as in [{streams_with_ids!r}]")
        self.url = checked_url(url)
        self._session = Session(
            self.url, timeout_s, patience_s, connects_within_s, frozenset(streams_with_ids), on_wait
        )
        self._open(
            {
                "base_url": self.url,
                "headers": _headers(token),
                # A proxy is for what lies beyond this machine.
                "trust_env": not is_local(self.url),
                "verify": client_context(self.url, ca, cert, key),
            },
            connections,
        )

    @abstractmethod
    def _open(self, arguments: dict[str, Any], connections: int) -> None:
        """Make the pool of so many connections. arguments: of httpx's clients, but for their limits."""


def limits_of(connections: int) -> httpx.Limits:
    """The limits of an httpx client that has so many connections, and keeps them."""
    return httpx.Limits(
        max_connections=connections, max_keepalive_connections=connections, keepalive_expiry=IDLE_S
    )


def _headers(token: str | None) -> dict[str, str]:
    if token is None:
        return {}
    try:
        return {"Authorization": f"Bearer {checked_token(token)}"}
    except ValueError:
        raise ClientError("token: it holds no token, as `railgun token new` prints one") from None


class Arriving:
    """A response that is on its way. content: what has come of its body."""

    def __init__(self, session: Session, request: Request) -> None:
        self._session, self._request = session, request
        self._started_s = time.monotonic()
        self._is_success = False
        self.content = bytearray()

    def for_httpx(self) -> dict[str, Any]:
        """The arguments of httpx's `stream`."""
        request = self._request
        return {
            "method": request.method,
            "url": request.path,
            "content": request.content,
            "headers": {"Content-Type": request.content_type} if request.content else {},
            "timeout": httpx.Timeout(request.timeout_s, connect=_CONNECT_TIMEOUT_S),
        }

    def begin(self, response: httpx.Response) -> None:
        """Note the head of the response."""
        self._is_success = response.is_success

    def answer(self, response: httpx.Response) -> Answer:
        """The response, now that it is whole."""
        retry_after = response.headers.get("Retry-After")
        return Answer(response.status_code, retry_after, bytes(self.content), self._took_s())

    def failure(self, error: httpx.HTTPError) -> Failure:
        """What it means that httpx raised an error."""
        content = bytes(self.content) if self._is_success else b""
        return Failure(_error_of(self._session, self._request, error), content, self._took_s())

    def closed(self) -> Failure:
        """What it means that the client was closed before."""
        place = self._session.place(self._request.path)
        return Failure(UnreachableError(f"{place}: the client is closed"), b"", self._took_s())

    def _took_s(self) -> float:
        return time.monotonic() - self._started_s


def _error_of(session: Session, request: Request, error: httpx.HTTPError) -> ClientError:
    place, failure = session.place(request.path), tls_failure(error)
    match error:
        case httpx.PoolTimeout():
            return UnreachableError(f"{place}: no connection was free within {request.timeout_s:g} s")
        case httpx.ConnectError() if failure is not None:
            return UnreachableError(f"{session.url}: {failure}")
        case httpx.ConnectTimeout():
            return RefusedConnectionError(f"{session.url}: no connection; is a server running there?")
        case httpx.ConnectError():
            ended = _ended_by(error)
            kind = UnreachableError if ended is None else RefusedConnectionError
            return kind(f"{session.url}: {_why(ended or error)}; is a server running there?")
        case httpx.TimeoutException():
            return ConnectionLostError(f"{place}: no answer within {request.timeout_s:g} s")
        case _:
            # A port that speaks TLS says so, but a client that still sends may miss it.
            is_lost = isinstance(error, httpx.RemoteProtocolError | httpx.WriteError | httpx.ReadError)
            may_want_tls = is_lost and session.url.startswith("http://")
            hint = "; if the server speaks TLS, write https://" if may_want_tls else ""
            return ConnectionLostError(f"{place}: the connection was lost: {failure or _why(error)}{hint}")


def _ended_by(error: BaseException | None) -> ConnectionError | None:
    """What ended a connection that was not made yet: refused or reset where a server may be about to listen.

    None for all else, such as a name that nobody knows.
    """
    while error is not None and not isinstance(error, ConnectionError):
        if isinstance(error, BaseExceptionGroup):
            # One for each address that the name has.
            return next(filter(None, map(_ended_by, error.exceptions)), None)
        error = error.__cause__ or error.__context__
    return error


def _why(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
