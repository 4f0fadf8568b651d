"""The client: one keep-alive connection to a server, its answers decoded, its refusals as errors."""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, unquote, urlencode

import httpx

from railgun.client.errors import (
    ClientError,
    ConnectionLostError,
    ProblemError,
    RefusedConnectionError,
    UnreachableError,
)
from railgun.client.tls import client_context, tls_failure

DEFAULT_URL = "http://127.0.0.1:8080"
URL_VARIABLE = "RAILGUN_URL"
TIMEOUT_S = 120.0

_CONNECT_TIMEOUT_S = 10.0
_FULL = (429, 503)
_RETRY_S, _RETRY_MAX_S, _TELL_S = 0.5, 10.0, 1.0
_SLASH = quote("/", safe="")
_JSON, _NDJSON = "application/json", "application/x-ndjson"


def url_from(given: str | None, environment: Mapping[str, str] = os.environ) -> str:
    """The server's address: the one given, else RAILGUN_URL, else this machine's. Raises ClientError."""
    url = given or environment.get(URL_VARIABLE) or DEFAULT_URL
    place = "--url" if given else URL_VARIABLE
    if "@" in url:
        # Before anything of it is printed: what stands before it may be a password, in whatever form.
        raise ClientError(
            f"{place}: it has an @, and takes no user or password, which would be seen in lists of processes and in "
            "logs; give a token by --token-file or RAILGUN_TOKEN"
        )
    if not url.startswith(("http://", "https://")):
        raise ClientError(f"{place}: {url[:80]!r} is no address of a server; did you mean http://{url[:80]}?")
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ClientError(f"{place}: {url[:80]!r} is no address of a server: {error}") from None
    if not parsed.host:
        raise ClientError(f"{place}: {url[:80]!r} names no host; write one as in {DEFAULT_URL}")
    return url.rstrip("/")


class Client:
    """Talks to the server at `url`. One thread uses it. Every method raises ClientError.

    A request that the server had no room for, or that came while it was starting (429, 503), of which it took nothing,
    is sent again when the server said, for `patience_s` in all; where nobody listens yet, for `connects_within_s`. One
    that may have been taken (a 503 that names no time) is not.
    on_wait: called with the reason, once a request has waited for a second.
    token: sent with each request; for a server that has tokens.
    ca, cert, key: files for TLS: the server's CA, this client's certificate and key (`client_context`).
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        ca: Path | str | None = None,
        cert: Path | str | None = None,
        key: Path | str | None = None,
        timeout_s: float = TIMEOUT_S,
        patience_s: float = 60.0,
        connects_within_s: float = 0.0,
        on_wait: Callable[[ClientError], None] | None = None,
        sleep: Callable[[float], None] = time.sleep,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url, self._sleep, self._on_wait = url, sleep, on_wait
        self._patience_s, self._connects_within_s = patience_s, connects_within_s
        self._timeout_s = timeout_s
        self._http = httpx.Client(
            base_url=url,
            timeout=httpx.Timeout(timeout_s, connect=_CONNECT_TIMEOUT_S),
            headers={} if token is None else {"Authorization": f"Bearer {token}"},
            # A proxy is for what lies beyond this machine.
            trust_env=not _is_loopback(httpx.URL(url).host),
            transport=transport,
            verify=client_context(url, ca, cert, key),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the connection go."""
        self._http.close()

    # --- what there is -----------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """Streams, their metrics and tasks, and the disk."""
        return _table(self._json("GET", "/v1/status"))

    def is_ready(self) -> bool:
        """Whether it has recovered and compiled. Raises UnreachableError where nobody listens."""
        return self._send("GET", "/readyz").status_code == httpx.codes.OK

    def streams(self) -> list[dict[str, Any]]:
        """The definitions of all streams."""
        return _list(self._json("GET", "/v1/streams"), "streams")

    def metrics(self, stream: str) -> list[dict[str, Any]]:
        """A stream's metrics: name, sql, home, warming, filled."""
        return _list(self._json("GET", f"{_place(stream)}/metrics"), "metrics")

    def cluster(self) -> dict[str, Any]:
        """The nodes of a cluster, the copies of each task, and who leads."""
        return _table(self._json("GET", "/v1/cluster"))

    def what_if(self, change: str) -> dict[str, Any]:
        """What a change of the cluster would move: remove=NODE, add=NUMBER or copies=NUMBER."""
        return _table(self._json("GET", f"/v1/cluster/plan?what_if={quote(change, safe='')}"))

    def change_log(self, limit: int, before: int | None = None) -> list[dict[str, Any]]:
        """Who changed what, the newest first. before: only changes of a smaller place."""
        query = urlencode({"limit": limit, **({} if before is None else {"before": before})})
        return _list(self._json("GET", f"/v1/log?{query}"), "changes")

    # --- changes -----------------------------------------------------------------------------------

    def drain(self, node: str, *, fewer_copies: bool = False) -> dict[str, Any]:
        """Have a node emptied; how it stands."""
        return _table(self._json("POST", f"{_node(node)}/drain", {"fewer_copies": fewer_copies}))

    def undrain(self, node: str) -> dict[str, Any]:
        """Have a node used again; how it stands."""
        return _table(self._json("POST", f"{_node(node)}/undrain"))

    def accept_cut(self, stream: str, partitioner: str, partition: int) -> dict[str, Any]:
        """Have a task go on without records that its log has lost; which these are."""
        task = {"stream": stream, "partitioner": partitioner, "partition": partition}
        return _table(self._json("POST", "/v1/cluster/accept-cut", task))

    def create_stream(self, definition: Mapping[str, Any]) -> None:
        """Register a stream."""
        self._json("POST", "/v1/streams", definition)

    def evolve_stream(self, stream: str, changes: Mapping[str, Any]) -> None:
        """Add fields to a stream, or change its lateness or retention."""
        self._json("PATCH", _place(stream), changes)

    def add_metrics(self, stream: str, sql: str) -> None:
        """Register the metrics of a query."""
        self._json("POST", f"{_place(stream)}/metrics", {"sql": sql})

    def begin_deepening(self, stream: str, cut_ms: int | None) -> dict[str, Any]:
        """Let older history be built for a stream; how that stands."""
        return _table(self._json("POST", f"{_place(stream)}/deepening", {"cut_ms": cut_ms}))

    def install_deepening(self, stream: str) -> None:
        """Let what was built take over; `deepening` says how far that is."""
        self._json("POST", f"{_place(stream)}/deepening/install", {})

    def deepening(self, stream: str) -> dict[str, Any]:
        """How the live backfill of a stream stands: state, history, behind, failure."""
        return _table(self._json("GET", f"{_place(stream)}/deepening"))

    def give_up_deepening(self, stream: str) -> None:
        """Let go of what there is of a live backfill."""
        self._asked("DELETE", f"{_place(stream)}/deepening", b"", _JSON)

    # --- events ------------------------------------------------------------------------------------

    def score(self, stream: str, event: Mapping[str, Any]) -> dict[str, Any]:
        """Send an event; its reply."""
        return _table(self._json("POST", f"{_place(stream)}/events", event))

    def score_lines(self, stream: str, lines: bytes) -> bytes:
        """Send events as NDJSON, one per line; a line for each, in order: its reply, or a problem object.

        Raises ConnectionLostError where it is not known what was taken.
        """
        place = f"{_place(stream)}/events"
        response = self._asked("POST", place, lines, _NDJSON)
        return response.content

    # --- values without an event -------------------------------------------------------------------

    def values(self, stream: str, key: Mapping[str, str], metrics: str | None = None) -> dict[str, Any]:
        """The metrics of a key as they are now. key: texts by field.  metrics: names, separated by commas."""
        query = urlencode({**key, **({} if metrics is None else {"metrics": metrics})})
        return _table(self._json("GET", f"{_place(stream)}/values?{query}"))

    # --- requests ----------------------------------------------------------------------------------

    def _json(self, method: str, path: str, body: object = None) -> Any:
        content = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
        response = self._asked(method, path, content, _JSON)
        try:
            return response.json()
        except ValueError:
            raise ClientError(
                f"{self._shown(path)}: the answer is no JSON; is this a Railgun server?"
            ) from None

    def _asked(self, method: str, path: str, content: bytes, content_type: str) -> httpx.Response:
        """The response of success; what was refused for want of room is sent again."""
        waited_s, is_told = 0.0, False
        while True:
            why: ClientError
            started_s = time.monotonic()
            try:
                response = self._send(method, path, content, content_type)
                if response.is_success:
                    return response
                after_s, limit_s = _retry_after_s(response), self._patience_s
                # A server may have waited too, for what lies behind it.
                waited_s += time.monotonic() - started_s
                why = ProblemError(self._shown(path), response.status_code, _problem(response))
            except RefusedConnectionError as error:
                after_s, limit_s, why = _RETRY_S, self._connects_within_s, error
            if after_s is None or waited_s + after_s > limit_s:
                raise why
            if self._on_wait is not None and not is_told and waited_s >= _TELL_S:
                is_told = True
                self._on_wait(why)
            self._sleep(after_s)
            waited_s += after_s

    def _send(
        self, method: str, path: str, content: bytes = b"", content_type: str = _JSON
    ) -> httpx.Response:
        headers = {"Content-Type": content_type} if content else {}
        try:
            return self._http.request(method, path, content=content, headers=headers)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            failure = tls_failure(error)
            if failure is not None:
                raise UnreachableError(f"{self.url}: {failure}") from None
            kind = RefusedConnectionError if _is_refused(error) else UnreachableError
            raise kind(f"{self.url}: {_why(error)}; is a server running there?") from None
        except httpx.TimeoutException:
            raise ConnectionLostError(
                f"{self._shown(path)}: no answer within {self._timeout_s:g} s"
            ) from None
        except httpx.TransportError as error:
            raise ConnectionLostError(
                f"{self._shown(path)}: the connection was lost: {tls_failure(error) or _why(error)}"
            ) from None

    def _shown(self, path: str) -> str:
        """The address as people write it, for messages. A slash in a name stays encoded, so that it is none."""
        return self.url + _SLASH.join(map(unquote, path.split(_SLASH)))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_refused(error: BaseException | None) -> bool:
    """Whether nobody listens there: a server may be about to."""
    while error is not None and not isinstance(error, ConnectionRefusedError):
        error = error.__cause__ or error.__context__
    return error is not None


def _place(stream: str) -> str:
    return f"/v1/streams/{quote(stream, safe='')}"


def _node(name: str) -> str:
    return f"/v1/cluster/nodes/{quote(name, safe='')}"


def _retry_after_s(response: httpx.Response) -> float | None:
    """How long to wait before the same again; None where that would not help."""
    retry_after = response.headers.get("Retry-After")
    if response.status_code not in _FULL or retry_after is None:
        return None
    try:
        return min(_RETRY_MAX_S, max(_RETRY_S, float(retry_after)))
    except ValueError:
        return _RETRY_S


def _problem(response: httpx.Response) -> Mapping[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _why(error: Exception) -> str:
    text = " ".join(str(error).split())
    return {"": type(error).__name__, "[Errno 111] Connection refused": "connection refused"}.get(text, text)


def _table(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise ClientError(f"a table was expected as the answer, not {str(body)[:80]!r}")
    return body


def _list(body: Any, name: str) -> list[dict[str, Any]]:
    found = body.get(name) if isinstance(body, dict) else body
    if not isinstance(found, Sequence) or isinstance(found, str):
        raise ClientError(f"a list of {name} was expected as the answer, not {str(body)[:80]!r}")
    return [each for each in found if isinstance(each, dict)]
