"""The use of HTTP by both clients: the settings of connections, and the meaning of their outcomes.

`Client` and `AsyncClient` extend its `Connected`.
"""

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
# A server closes an idle connection after http.keep_alive_s (75 s). The client has to close it earlier, because a
# request that is sent while the server closes would be lost.
IDLE_S = 5.0
"""The time for which an unused connection is kept."""


class Connected(ABC):
    """The common base of `Client` and `AsyncClient`: their parameters and the server's address."""

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
        token: the token to send, for a server that has tokens.
        ca: a file with the certificates of the authorities to trust, in place of the machine's.
        cert, key: files with the certificate to show and its private key. The key may be in the same file.
        timeout_s: the time limit for the answer to a request.
        patience_s: the time limit of a call with all its repeats. A request is repeated if the server was full or
            starting (429 and 503 that name a time). Events that may have been taken are sent again if their stream
            has an id field.
        connects_within_s: the part of `patience_s` that a call waits for a server that does not listen.
        streams_with_ids: streams that have an id field and remember at least as many ids (`dedup_events`) as a request
            has events. The client looks others up when it needs to know, which takes the scope `read`.
        connections: the most requests at once; more wait.
        on_wait: is called with the reason, once in a call that has waited for a second.

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
                # A proxy is for servers on other machines only.
                "trust_env": not is_local(self.url),
                "verify": client_context(self.url, ca, cert, key),
            },
            connections,
        )

    @abstractmethod
    def _open(self, arguments: dict[str, Any], connections: int) -> None:
        """Make the pool of connections. arguments: those of httpx's clients, without `limits`."""


def limits_of(connections: int) -> httpx.Limits:
    """Return the limits of an httpx client that opens and keeps this number of connections."""
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
    """A response that is being received. content: the part of its body that has come."""

    def __init__(self, session: Session, request: Request) -> None:
        self._session, self._request = session, request
        self._started_s = time.monotonic()
        self._is_success = False
        self.content = bytearray()

    def for_httpx(self) -> dict[str, Any]:
        """Return the arguments of httpx's `stream`."""
        request = self._request
        return {
            "method": request.method,
            "url": request.path,
            "content": request.content,
            "headers": {"Content-Type": request.content_type} if request.content else {},
            "timeout": httpx.Timeout(request.timeout_s, connect=_CONNECT_TIMEOUT_S),
        }

    def begin(self, response: httpx.Response) -> None:
        """Record the status of the response."""
        self._is_success = response.is_success

    def answer(self, response: httpx.Response) -> Answer:
        """Return the whole response."""
        retry_after = response.headers.get("Retry-After")
        return Answer(response.status_code, retry_after, bytes(self.content), self._took_s())

    def failure(self, error: httpx.HTTPError) -> Failure:
        """Return the failure that an error of httpx means."""
        content = bytes(self.content) if self._is_success else b""
        return Failure(_error_of(self._session, self._request, error), content, self._took_s())

    def closed(self) -> Failure:
        """Return the failure of a call to a closed client."""
        place = self._session.place(self._request.path)
        return Failure(UnreachableError(f"{place}: the client is closed"), b"", self._took_s())

    def _took_s(self) -> float:
        return time.monotonic() - self._started_s


def _error_of(session: Session, request: Request, error: httpx.HTTPError) -> ClientError:
    """Return the client's error for one of httpx. Its class says whether the server may have taken the request."""
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
            # A port that speaks TLS answers with that hint, but a client that is still sending may not receive it.
            is_lost = isinstance(error, httpx.RemoteProtocolError | httpx.WriteError | httpx.ReadError)
            may_want_tls = is_lost and session.url.startswith("http://")
            hint = "; if the server speaks TLS, write https://" if may_want_tls else ""
            return ConnectionLostError(f"{place}: the connection was lost: {failure or _why(error)}{hint}")


def _ended_by(error: BaseException | None) -> ConnectionError | None:
    """Return the refusal or reset that prevented a connection. A server may be about to listen there.

    Returns None for all other errors, such as an unknown host name.
    """
    while error is not None and not isinstance(error, ConnectionError):
        if isinstance(error, BaseExceptionGroup):
            # The group has one error for each address of the name.
            return next(filter(None, map(_ended_by, error.exceptions)), None)
        error = error.__cause__ or error.__context__
    return error


def _why(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
