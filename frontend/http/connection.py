"""One connection of a client. It adds to uvicorn's: limits for heads, for the number of connections, and for time.

No request has a timer of its own: one sweep a second looks at all connections. A request that is plainly a single event
is scored without messages for the application, since these cost more than all else that is done for the event here.
The head of a request is its first line and its headers.
"""

import asyncio
import logging
import math
import select
import time
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import Any

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from frontend.access.permission import Certificate
from frontend.http.asgi import (
    AT_WORK,
    CERTIFICATE,
    HAS_CERTIFICATE,
    NO_STORE,
    PROBLEM_TYPE,
    Header,
    encoder,
)
from frontend.http.single_events import METHOD, Admitted, SingleEvents
from frontend.problems import RETRY_AFTER_S, problem
from railgun.access.tls import certificate_end_s

HEAD_BYTES_MAX = 64 << 10
FRAMING_SHARE_MAX = 16
"""How many bytes of framing (sizes of chunks, trailers) may come for each byte of a body."""
HEAD_S, DISCARD_S = 10.0, 10.0
"""How long a head may take to arrive, and how long the rest of a request is read that is answered already. The time of
the first head begins with the connection."""
CLOSING_S = 0.25
"""How long the server waits for a client to confirm the end of TLS. A client need not confirm it."""
_CLOSE: Header = (b"connection", b"close")
_WHOLE_S = 1.0
"""How long the body of a single event may take. After that the application reads it, with its own time limit."""

_log = logging.getLogger("railgun.frontend")


class _Stage(Enum):
    IDLE = 0
    HEAD = 1
    BODY = 2


class _Answering:
    """The state of a request that is answered without the application, with the attributes that uvicorn reads."""

    __slots__ = ("disconnected", "keep_alive", "response_complete")
    more_body = False
    # uvicorn sets it; nothing waits for it.
    message_event = asyncio.Event()

    def __init__(self) -> None:
        self.keep_alive = True
        self.disconnected = self.response_complete = False


class _HeadersOfAll:
    """Keeps the headers of every answer without the application, as bytes. uvicorn makes a new list of those of all
    answers each second, for the date."""

    __slots__ = ("_headers", "_lines")

    def __init__(self) -> None:
        self._headers: Sequence[Header] = ()
        self._lines = b""

    def lines(self, headers: Sequence[Header]) -> bytes:
        """Return the bytes of a list of headers. Nobody changes a list, so its bytes are kept until another comes."""
        if headers is not self._headers:
            self._headers, self._lines = headers, _lines([*headers, NO_STORE])
        return self._lines


class Connection(HttpToolsProtocol):
    """A connection from its beginning to its end.

    limit, patience_s, single_events, of_all: set by `connection_type`. of_all: the headers of every answer.
    is_outdated: over TLS, whether other clients' certificates are accepted now than at this connection's handshake.
    """

    limit = 1024
    patience_s = 75.0
    single_events: SingleEvents
    of_all: "_HeadersOfAll"
    is_outdated: Callable[[], bool] = staticmethod(lambda: False)

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._stage, self._is_new = _Stage.IDLE, True
        self._since_s = self._heard_s = self.loop.time()
        self._framing_bytes = self._body_bytes = 0
        self._unsent_bytes, self._unsent_s = 0, self._since_s
        self._discarding_s: float | None = None
        self._closing_s: float | None = None
        # A request that may be a single event: who sends it where, and the part of its body that has arrived.
        self._admitted: Admitted | None = None
        self._text = b""
        self._has_certificate = self._is_secure = self._is_last = False
        self._certificate_end_s = -math.inf
        self._offers_upgrade = False
        # If several requests came together: the one that the application answers now. uvicorn knows only the last.
        self._running: Any = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Over TLS the handshake has just ended.
        self._since_s = self._heard_s = self.loop.time()
        secured = transport.get_extra_info("ssl_object")
        if secured is not None:
            self._is_secure, self._certificate_end_s = True, certificate_end_s(secured)
        if self.is_outdated():
            self.transport.abort()
        elif len(self.connections) > self.limit:
            self._refuse(503, f"at most {self.limit} connections are taken; try again a little later")

    def connection_lost(self, exc: Exception | None) -> None:
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._heard_s = self.loop.time()
        if self._stage is _Stage.IDLE:
            self._enter(_Stage.HEAD)
        self._framing_bytes += len(data)
        try:
            self._parse(data)
        except HttpParserError:
            _log.debug("a request that is none", exc_info=True)
            self._refuse(400, "Invalid HTTP request received.")
            return
        if self._framing_bytes > HEAD_BYTES_MAX + FRAMING_SHARE_MAX * self._body_bytes:
            if not self.transport.is_closing():
                self._refuse(431, f"more than {HEAD_BYTES_MAX} bytes of headers, or of trailers")
        elif self._is_last and self._stage is _Stage.HEAD and self._is_answered():
            self._close()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the connection open if a client that sends no more waits for an answer. Over TLS that cannot be done."""
        if self._is_secure:
            return False
        if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
            return False
        self.cycle.keep_alive = False
        return True

    def _parse(self, data: bytes) -> None:
        """Parse what has arrived. Raises HttpParserError.

        An `Upgrade` to another protocol is ignored, as RFC 9110 (7.8) allows: some clients offer HTTP/2 with each
        request. The parser would take such a request's body for the other protocol, so a new parser gets the head
        without the offer, then the body.
        """
        while data:
            self._offers_upgrade = False
            try:
                self.parser.feed_data(data)
                return
            except HttpParserUpgrade as upgrade:
                data = data[upgrade.args[0] :]
            if self.transport.is_closing():
                return
            head = _head_without_upgrade(self.parser.get_method(), self.url, self.headers)
            self.parser = HttpRequestParser(self)
            # uvicorn sets this for its own parser.
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            self._offers_upgrade = False
            self.parser.feed_data(head)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._is_secure:
            self._has_certificate = self._certificate() is not Certificate.NONE
            self.scope[CERTIFICATE] = self._certificate  # type: ignore[literal-required]
        self.scope[HAS_CERTIFICATE] = self._has_certificate  # type: ignore[literal-required]
        self._enter(_Stage.HEAD)

    def on_header(self, name: bytes, value: bytes) -> None:
        # Trailers, which follow the body, are left out: the head alone decides about a request.
        if self._stage is _Stage.HEAD:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            self._offers_upgrade = True
            if self.parser.get_method() == b"CONNECT":
                self._refuse(405, "this is no proxy")
            return
        self._enter(_Stage.BODY)
        if self._is_free() and self.parser.get_method() == METHOD:
            self._admitted = self.single_events.admit(
                self.url, self.headers, has_certificate=self._has_certificate
            )
        if self._admitted is None:
            self._make_cycle()

    def on_body(self, body: bytes) -> None:
        self._framing_bytes -= len(body)
        self._body_bytes += len(body)
        if self._admitted is None:
            super().on_body(body)
        else:
            self._text += body

    def on_message_complete(self) -> None:
        if self._offers_upgrade:
            return
        self._enter(_Stage.IDLE)
        admitted = self._admitted
        if admitted is not None:
            cycle = _Answering()
            cycle.keep_alive = not self._is_last
            if self.single_events.score(admitted, self._text, partial(self._answer, cycle)):
                self._admitted, self._text = None, b""
                self.cycle = cycle  # type: ignore[assignment]
                return
            self._leave_to_application()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Do what uvicorn does, but set no timer: the sweep ends idle connections."""
        # The client's time begins now, however long the answer took.
        self._heard_s = self.loop.time()
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def shutdown(self) -> None:
        if self._admitted is not None:
            self._leave_to_application()
        super().shutdown()
        if self.transport.is_closing():
            self._wait_no_longer()

    def end(self) -> None:
        """Close once the request that is under way, or has arrived, is answered.

        A request whose head is not whole yet gets no answer.
        """
        self._is_last = True
        if self.transport.is_closing():
            return
        if self._admitted is not None:
            self._leave_to_application()
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False
        elif self._stage is _Stage.IDLE:
            self._close_unread()
        elif self._stage is _Stage.HEAD:
            self._close()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, msg)

    def sweep(self, now_s: float) -> None:
        """End the connection if its client has kept it waiting for too long."""
        if self.transport.is_closing():
            # The connection closes once the client has taken the last bytes that were sent.
            if not self._is_sent(now_s) or (self._is_secure and self._is_unanswered(now_s)):
                self.transport.abort()
            return
        if self._admitted is not None and now_s - self._since_s > _WHOLE_S:
            self._leave_to_application()
        answered = self._admitted is None and self._is_answered()
        if self._is_answering():
            self._heard_s = now_s
        if self._stage is _Stage.HEAD and answered and now_s - self._since_s > HEAD_S:
            self._refuse(408, f"the headers did not arrive within {HEAD_S:g} s")
        elif self._stage is _Stage.BODY and answered:
            self._discard(now_s)
        elif not self._is_sent(now_s):
            self.transport.abort()
        elif self._stage is not _Stage.HEAD and (self._is_silent(now_s) or (self._is_last and answered)):
            self._close_unread()

    def _enter(self, stage: _Stage) -> None:
        if stage is self._stage:
            return
        self._stage = stage
        self._is_new = self._is_new and stage is _Stage.HEAD
        if not self._is_new:
            self._since_s = self.loop.time()
        if stage is _Stage.HEAD:
            self._framing_bytes = self._body_bytes = 0
            self._discarding_s = None

    def _certificate(self) -> Certificate:
        """Return the standing of the client's certificate, over TLS."""
        if time.time() > self._certificate_end_s:
            return Certificate.NONE
        return Certificate.OUTDATED if self.is_outdated() else Certificate.GOOD

    def _is_free(self) -> bool:
        """Whether the next request can be answered at once, with the connection kept open after it."""
        return (
            (self.cycle is None or self.cycle.response_complete)
            and not self.flow.write_paused
            and self.parser.should_keep_alive()
            and self.parser.get_http_version() == "1.1"
        )

    def _leave_to_application(self) -> None:
        """Hand the application a request whose head, and part of its body, were kept here."""
        text, self._admitted, self._text = self._text, None, b""
        self._make_cycle()
        if text:
            super().on_body(text)

    def _make_cycle(self) -> None:
        """Have the application answer the request whose head has arrived."""
        before = self.cycle
        super().on_headers_complete()
        if self._is_last and self.cycle is not None and self.cycle is not before:
            self.cycle.keep_alive = False

    def _answer(
        self, cycle: _Answering, status: int, body: bytes, content_type: bytes, headers: Sequence[Header]
    ) -> None:
        """Send an answer as uvicorn sends that of an application."""
        if cycle.disconnected or self.transport.is_closing():
            return
        described = [(b"content-type", content_type), _length(body), *headers]
        if not cycle.keep_alive:
            described.append(_CLOSE)
        self.transport.write(self._response(status, described, body))
        cycle.response_complete = True
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def _is_answered(self) -> bool:
        """Whether the last request has its answer, from the application or from `single_events`."""
        return self.cycle is None or self.cycle.response_complete

    def _is_answering(self) -> bool:
        """Whether the client waits for the server, which works on what has arrived or has paused reading."""
        if self.cycle is None or self.cycle.response_complete:
            return False
        if not self.cycle.more_body or self.flow.read_paused:
            return True
        is_at_work: Any = self.cycle.scope.get(AT_WORK)
        return is_at_work is not None and bool(is_at_work())

    def _close_unread(self) -> None:
        """Close, unless bytes have arrived that the event loop has not read yet: the client would see a reset."""
        arrived = select.poll()
        arrived.register(self.transport.get_extra_info("socket").fileno(), select.POLLIN)
        if not arrived.poll(0):
            self._close()

    def _close(self) -> None:
        self.transport.close()
        self._wait_no_longer()

    def _wait_no_longer(self) -> None:
        """End a TLS connection soon: closing it waits for the client to confirm, and an idle client does not."""
        if self._is_secure:
            self.loop.call_later(CLOSING_S, self._drop)

    def _drop(self) -> None:
        """End the connection if everything was sent; else look again later."""
        if self.transport.get_write_buffer_size() == 0:
            self.transport.abort()
        elif self in self.connections:
            self._wait_no_longer()

    def _is_unanswered(self, now_s: float) -> bool:
        """Whether a client that was sent everything has not confirmed the end of TLS within `DISCARD_S`."""
        if self._closing_s is None:
            self._closing_s = now_s
        return now_s - self._closing_s > DISCARD_S and self.transport.get_write_buffer_size() == 0

    def _is_silent(self, now_s: float) -> bool:
        return now_s - self._heard_s > (min(HEAD_S, self.patience_s) if self._is_new else self.patience_s)

    def _is_sent(self, now_s: float) -> bool:
        """Whether the client takes what it is sent: within `patience_s` the number of unsent bytes has changed."""
        unsent_bytes = self.transport.get_write_buffer_size()
        if unsent_bytes == 0 or unsent_bytes != self._unsent_bytes:
            self._unsent_bytes, self._unsent_s = unsent_bytes, now_s
        return now_s - self._unsent_s <= self.patience_s

    def _discard(self, now_s: float) -> None:
        """Read the rest of a request that is answered already for a while, so that the answer arrives; then close."""
        if self._discarding_s is None:
            self._discarding_s = now_s
        elif now_s - self._discarding_s > DISCARD_S:
            self.transport.close()

    def _refuse(self, status: int, detail: str) -> None:
        """Answer with a problem, without the application, and close."""
        body = encoder.encode(problem(status, detail))
        passes = [(b"retry-after", b"%d" % RETRY_AFTER_S)] if status == 503 else []
        described = [(b"content-type", PROBLEM_TYPE), *passes, _length(body), _CLOSE]
        self.transport.write(self._response(status, described, body))
        self.transport.close()

    def _response(self, status: int, headers: Sequence[Header], body: bytes) -> bytes:
        """Return an answer as bytes. headers: beside those of every answer."""
        of_all = self.of_all.lines(self.server_state.default_headers)
        return b"".join((STATUS_LINE[status], of_all, _lines(headers), b"\r\n", body))


def _length(body: bytes) -> Header:
    return b"content-length", b"%d" % len(body)


def _lines(headers: Sequence[Header]) -> bytes:
    return b"".join([b"%s: %s\r\n" % each for each in headers])


def _head_without_upgrade(method: bytes, url: bytes, headers: Sequence[Header]) -> bytes:
    """Return the head of a request of HTTP/1.1 without its offer of another protocol."""
    kept = [(name, value) for name, value in headers if name not in (b"upgrade", b"http2-settings")]
    options = [
        option.strip()
        for name, value in kept
        if name == b"connection"
        for option in value.split(b",")
        if option.strip().lower() not in (b"upgrade", b"http2-settings", b"")
    ]
    kept = [each for each in kept if each[0] != b"connection"]
    if options:
        kept.append((b"connection", b", ".join(options)))
    return b"%s %s HTTP/1.1\r\n%s\r\n" % (method, url, _lines(kept))


def connection_type(limit: int, patience_s: float, single_events: SingleEvents) -> type[Connection]:
    """Return the class of a server's connections.

    limit: how many there may be at a time.
    patience_s: how long a client may neither send nor take anything.
    """
    own = {
        "limit": limit,
        "patience_s": patience_s,
        "single_events": single_events,
        "of_all": _HeadersOfAll(),
    }
    return type("Connection", (Connection,), own)
