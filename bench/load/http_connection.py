"""A keep-alive connection with one request at a time, which does as little per request as a client can."""

import socket
import ssl

import httptools

from bench.load.http_requests import GOOD
from bench.load.outcome import FAILED

_READ_BYTES = 1 << 18


class Connection:
    """A non-blocking connection. place: of the request under way, -1 if there is none.  context: for TLS, or None."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None = None) -> None:
        self.socket = socket.create_connection((host, port), timeout=5.0)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_hostname=host)
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.place = -1
        self.status, self.good = FAILED, 0
        self.is_open = True
        self._unsent = memoryview(b"")
        self._begin()

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self._complete = False

    def send(self, place: int, request: bytes) -> bool:
        """Begin a request. Returns True if `send_more` is needed once the socket takes more."""
        self.place = place
        self._unsent = memoryview(request)
        return self.send_more()

    def send_more(self) -> bool:
        """Send more of the request. Returns True if there is still more."""
        try:
            while self._unsent:
                self._unsent = self._unsent[self.socket.send(self._unsent) :]
        except (BlockingIOError, ssl.SSLWantWriteError):
            return True
        except OSError:
            self._break()
        return False

    def receive(self) -> bool:
        """Read what has arrived. Returns True if the request under way has ended; `status` and `good` say how."""
        try:
            data = self.socket.recv(_READ_BYTES)
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        except OSError:
            data = b""
        if not data:
            self._break()
            return self.place >= 0
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._break()
            return self.place >= 0
        if not self._complete:
            return False
        self.status = self._parser.get_status_code()
        self.good = b"".join(self._body).count(GOOD) if self.status < 300 else 0
        self._begin()
        return True

    def on_headers_complete(self) -> None:
        """Note that the answer's head is there. The parser calls it, and knows only here whether more may follow."""
        self.is_open = self._parser.should_keep_alive()

    def on_body(self, data: bytes) -> None:
        """Take a piece of the answer. The parser calls it."""
        self._body.append(data)

    def on_message_complete(self) -> None:
        """Note the answer's end. The parser calls it."""
        self._complete = True

    def _break(self) -> None:
        self.is_open = False
        self.status, self.good = FAILED, 0

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()
