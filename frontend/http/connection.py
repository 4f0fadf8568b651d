"""One connection of a client: uvicorn's, with what it lacks: limits of heads, of connections, and of patience.

Nothing here costs a timer per request: one sweep a second looks at all connections. Requests that are plainly single
events are not made into messages for the application, which costs more than all else that is done for them here.
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
from frontend.http.asgi import AT_WORK, CERTIFICATE, HAS_CERTIFICATE, PROBLEM_TYPE, Header, encoder
from frontend.http.single_events import METHOD, Admitted, SingleEvents
from frontend.problems import RETRY_AFTER_S, problem
from railgun.access.tls import certificate_end_s

HEAD_BYTES_MAX = 64 << 10
FRAMING_SHARE_MAX = 16
"""Bytes that are no body (sizes of chunks, trailers) for each that is, beside those of a head."""
HEAD_S, DISCARD_S = 10.0, 10.0
"""How long a head may take to arrive, the first one from when the connection was made; how long what is left of a
request is read once it is answered."""
CLOSING_S = 0.25
"""How long a client that has had all its answers may take to say that it has seen the end of TLS. It need not."""
_CLOSE: Header = (b"connection", b"close")
_WHOLE_S = 1.0
"""How long the body of a single event may take before the application minds it, which limits bodies in time."""

_log = logging.getLogger("railgun.frontend")


class _Stage(Enum):
    IDLE = 0
    HEAD = 1
    BODY = 2


class _Answering:
    """What uvicorn asks of a request that is answered beside the application."""

    __slots__ = ("disconnected", "keep_alive", "response_complete")
    more_body = False
    # Nobody waits for it.
    message_event = asyncio.Event()

    def __init__(self) -> None:
        self.keep_alive = True
        self.disconnected = self.response_complete = False


class _HeadersOfAll:
    """The headers of every answer as bytes: uvicorn makes a new list of them each second, for the date."""

    __slots__ = ("_headers", "_lines")

    def __init__(self) -> None:
        self._headers: Sequence[Header] = ()
        self._lines = b""

    def lines(self, headers: Sequence[Header]) -> bytes:
        """Those of a list, which nobody changes."""
        if headers is not self._headers:
            self._headers, self._lines = headers, _lines(headers)
        return self._lines


class Connection(HttpToolsProtocol):
    """limit, patience_s, single_events, of_all: set by `connection_type`.

    is_outdated: says over TLS whether other clients are good by now than when it shook hands.
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
        # Of a request that may be a single event: where it goes, and what is there of its body.
        self._admitted: Admitted | None = None
        self._text = b""
        self._has_certificate = self._is_secure = self._is_last = False
        self._certificate_end_s = -math.inf
        self._offers_upgrade = False
        # Of several requests that came together, the one that the application is at; uvicorn knows the last only.
        self._running: Any = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Over TLS it has shaken hands just now.
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
        """A client that has sent all it will may still wait for its answer. Over TLS the event loop sends none then."""
        if self._is_secure:
            return False
        if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
            return False
        self.cycle.keep_alive = False
        return True

    def _parse(self, data: bytes) -> None:
        """Parse what has arrived. Raises HttpParserError.

        An `Upgrade` to another protocol is ignored, as a server may (RFC 9110, 7.8): some clients offer HTTP/2 with
        each request. The parser takes the body of such a request for the other protocol; another one parses it without.
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
            # As uvicorn's.
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
        # What follows the body (trailers) is no part of the head, by which requests are decided about.
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
        """As uvicorn's, but for its timer: the sweep ends connections that are kept for nothing."""
        # However long the answer took: the client's time begins now.
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
        """Close after the answer that is under way, or that to a request which has reached this machine already, as a
        whole: one whose head is half there is not taken.
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
        """End the connection where the client has kept it waiting for too long."""
        if self.transport.is_closing():
            # It waits for the client to take what it was sent last.
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
        """How the client's stands, over TLS."""
        if time.time() > self._certificate_end_s:
            return Certificate.NONE
        return Certificate.OUTDATED if self.is_outdated() else Certificate.GOOD

    def _is_free(self) -> bool:
        """May the next request be answered at once, and the connection stay as it is then?"""
        return (
            (self.cycle is None or self.cycle.response_complete)
            and not self.flow.write_paused
            and self.parser.should_keep_alive()
            and self.parser.get_http_version() == "1.1"
        )

    def _leave_to_application(self) -> None:
        """The request whose head, and what there is of its body, was kept here."""
        text, self._admitted, self._text = self._text, None, b""
        self._make_cycle()
        if text:
            super().on_body(text)

    def _make_cycle(self) -> None:
        """Have the application answer the request whose head is there."""
        before = self.cycle
        super().on_headers_complete()
        if self._is_last and self.cycle is not None and self.cycle is not before:
            self.cycle.keep_alive = False

    def _answer(
        self, cycle: _Answering, status: int, body: bytes, content_type: bytes, headers: Sequence[Header]
    ) -> None:
        """As uvicorn does it for an application."""
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
        """Whether all that was left to the application, or scored beside it, has its answer."""
        return self.cycle is None or self.cycle.response_complete

    def _is_answering(self) -> bool:
        """Is the server at work on what has arrived, or not reading what it could?"""
        if self.cycle is None or self.cycle.response_complete:
            return False
        if not self.cycle.more_body or self.flow.read_paused:
            return True
        is_at_work: Any = self.cycle.scope.get(AT_WORK)
        return is_at_work is not None and bool(is_at_work())

    def _close_unread(self) -> None:
        """Close, unless something has come that the loop has not got round to read: the client would find its request
        reset.
        """
        arrived = select.poll()
        arrived.register(self.transport.get_extra_info("socket").fileno(), select.POLLIN)
        if not arrived.poll(0):
            self._close()

    def _close(self) -> None:
        self.transport.close()
        self._wait_no_longer()

    def _wait_no_longer(self) -> None:
        """Closing TLS waits for the client to say that it has seen it; one that idles does not look."""
        if self._is_secure:
            self.loop.call_later(CLOSING_S, self._drop)

    def _drop(self) -> None:
        """Let go of a client that has been sent everything."""
        if self.transport.get_write_buffer_size() == 0:
            self.transport.abort()
        elif self in self.connections:
            self._wait_no_longer()

    def _is_unanswered(self, now_s: float) -> bool:
        """Whether a client that was sent all has not said for long that it has seen the end of TLS."""
        if self._closing_s is None:
            self._closing_s = now_s
        return now_s - self._closing_s > DISCARD_S and self.transport.get_write_buffer_size() == 0

    def _is_silent(self, now_s: float) -> bool:
        return now_s - self._heard_s > (min(HEAD_S, self.patience_s) if self._is_new else self.patience_s)

    def _is_sent(self, now_s: float) -> bool:
        """Does the client take what it is sent?"""
        unsent_bytes = self.transport.get_write_buffer_size()
        if unsent_bytes == 0 or unsent_bytes != self._unsent_bytes:
            self._unsent_bytes, self._unsent_s = unsent_bytes, now_s
        return now_s - self._unsent_s <= self.patience_s

    def _discard(self, now_s: float) -> None:
        """The rest of a request that is answered already is read for a while, so that the answer arrives."""
        if self._discarding_s is None:
            self._discarding_s = now_s
        elif now_s - self._discarding_s > DISCARD_S:
            self.transport.close()

    def _refuse(self, status: int, detail: str) -> None:
        """Answer beside any application, and close."""
        body = encoder.encode(problem(status, detail))
        passes = [(b"retry-after", b"%d" % RETRY_AFTER_S)] if status == 503 else []
        described = [(b"content-type", PROBLEM_TYPE), *passes, _length(body), _CLOSE]
        self.transport.write(self._response(status, described, body))
        self.transport.close()

    def _response(self, status: int, headers: Sequence[Header], body: bytes) -> bytes:
        """An answer. headers: beside those of every answer."""
        of_all = self.of_all.lines(self.server_state.default_headers)
        return b"".join((STATUS_LINE[status], of_all, _lines(headers), b"\r\n", body))


def _length(body: bytes) -> Header:
    return b"content-length", b"%d" % len(body)


def _lines(headers: Sequence[Header]) -> bytes:
    return b"".join([b"%s: %s\r\n" % each for each in headers])


def _head_without_upgrade(method: bytes, url: bytes, headers: Sequence[Header]) -> bytes:
    """The head of a request of HTTP/1.1 that offers no other protocol."""
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
    """Connections of a server. limit: how many at a time.  patience_s: for a client that neither sends nor takes."""
    own = {
        "limit": limit,
        "patience_s": patience_s,
        "single_events": single_events,
        "of_all": _HeadersOfAll(),
    }
    return type("Connection", (Connection,), own)
