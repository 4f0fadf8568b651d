"""Accepts connections over TLS, counts them, and hands them to the server after their handshakes.

uvicorn's own way to accept counts a client only after its handshake, and has one certificate for all clients. Here TLS
begins once a client's first record is there as a whole. Until then a client is a socket, a reader and a timer. A TLS
connection is 50 objects: for each of thousands of slow clients, collecting garbage would stop the event loop for 40 ms.
"""

import asyncio
import contextlib
import errno
import logging
import select
import socket
from collections.abc import Callable, Sized

from railgun.access import clear_text
from railgun.access.tls import HANDSHAKE_LEAST_S, HANDSHAKE_S, Certificates, Tls

_OF_ONE_CLIENT = frozenset({errno.ECONNABORTED, errno.EPROTO, errno.ECONNRESET})
"""Errors of an accept that mean only that one client is gone."""
_AGAIN_S = 1.0
"""The pause after an accept that failed otherwise: too many files may be open, or too many are watched."""
_LOOK_AGAIN_S = 0.1
"""The pause after the system has said too early that a record is there."""
_CLOSED_WITHIN_S = 3_600.0
"""How long the event loop lets closing take. Connections end sooner by themselves, if the client takes nothing."""
_HEADER_BYTES, _CONTENT_BYTES_MAX = 5, 1 << 14
"""The size of a TLS record's header, and the greatest size of its content (RFC 8446, 5.1)."""
_HANDSHAKE, _VERSION = b"\x16", b"\x03"
"""The first two bytes of a record of a handshake: its type, and the major version, which is that of SSL 3."""
_log = logging.getLogger("railgun.frontend")


class TlsServer:
    """Accepts connections until it is closed.

    listener: listens already, and is closed by its owner.
    connections: those whose handshakes are done.
    limit: the greatest number of these and of handshakes under way. Further connections are closed at once.
    make: returns the protocol of a connection, given the certificates of its handshake.
    """

    def __init__(
        self,
        listener: socket.socket,
        tls: Tls,
        connections: Sized,
        limit: int,
        make: Callable[[Certificates], asyncio.Protocol],
    ) -> None:
        self._listener, self._tls, self._make = listener, tls, make
        self._connections, self._limit = connections, limit
        self._loop = asyncio.get_running_loop()
        # Clients whose first record is not there yet, each with the timer that ends it.
        self._slow: dict[socket.socket, asyncio.TimerHandle] = {}
        self._handshakes: set[asyncio.Task[None]] = set()
        listener.setblocking(False)
        self._accepting = self._loop.create_task(self._accept())

    def close(self) -> None:
        """Accept no more, and end handshakes that are under way."""
        for client in list(self._slow):
            self._end_slow(client)
        for each in (self._accepting, *self._handshakes):
            each.cancel()

    async def wait_closed(self) -> None:
        """Wait until accepting and all handshakes have ended."""
        await asyncio.gather(self._accepting, *self._handshakes, return_exceptions=True)

    async def _accept(self) -> None:
        while True:
            try:
                client, address = await self._loop.sock_accept(self._listener)
                if len(self._connections) + self._tls.under_way >= self._limit:
                    self._tls.handshakes["full"] += 1
                    client.close()
                    continue
                self._await_first_byte(client, str(address[0]))
            except OSError as error:
                if error.errno in _OF_ONE_CLIENT:
                    continue
                _log.warning("no connection can be accepted: %s", error.strerror or error)
                await asyncio.sleep(_AGAIN_S)

    def _await_first_byte(self, client: socket.socket, address: str) -> None:
        """Have a client's handshake begin when it sends something. Raises OSError after closing its connection."""
        due_s = self._loop.time() + HANDSHAKE_S
        try:
            client.setblocking(False)
            self._loop.add_reader(client, self._look, client, address, due_s, 1)
        except OSError:
            client.close()
            raise
        self._tls.under_way += 1
        self._slow[client] = self._loop.call_at(due_s, self._late, client)

    def _watch(self, client: socket.socket, address: str, due_s: float, size_bytes: int) -> None:
        """Call `_look` once this many bytes of a client are there, or its connection has ended."""
        if client in self._slow:
            self._loop.add_reader(client, self._look, client, address, due_s, size_bytes)

    def _look(self, client: socket.socket, address: str, due_s: float, awaited_bytes: int) -> None:
        """Begin the handshake if the first record is there.

        due_s: when the handshake has to be over, by the loop's clock.
        awaited_bytes: how many bytes had to be there before the system called this.
        """
        try:
            sent = client.recv(_HEADER_BYTES + _CONTENT_BYTES_MAX, socket.MSG_PEEK)
        except BlockingIOError:
            return
        except OSError:
            sent = b""
        size_bytes = _record_bytes(sent)
        is_there = len(sent) >= size_bytes
        if size_bytes == 0 or (not is_there and _sends_no_more(client)):
            if clear_text.is_clear_text(sent):
                with contextlib.suppress(OSError):
                    clear_text.answer(client)
            self._end_slow(client)
            self._tls.handshakes["failed"] += 1
        elif is_there:
            self._begin(client, address, due_s)
        elif size_bytes > awaited_bytes:
            # Else the loop would call this again and again for the bytes that are there, until the rest comes.
            _call_when_there(client, size_bytes)
            self._watch(client, address, due_s, size_bytes)
        else:
            # The system may not wait for all of the bytes, for instance if memory is short.
            self._loop.remove_reader(client)
            self._loop.call_later(_LOOK_AGAIN_S, self._watch, client, address, due_s, size_bytes)

    def _begin(self, client: socket.socket, address: str, due_s: float) -> None:
        """Begin the handshake of a client whose first record is there."""
        self._loop.remove_reader(client)
        self._slow.pop(client).cancel()
        _call_when_there(client, 1)
        within_s = max(HANDSHAKE_LEAST_S, due_s - self._loop.time())
        task = self._loop.create_task(self._shake_hands(client, address, within_s))
        self._handshakes.add(task)
        task.add_done_callback(self._ended)

    def _late(self, client: socket.socket) -> None:
        """Close the connection of a client whose first record has not come in time."""
        self._end_slow(client)
        self._tls.handshakes["late"] += 1

    def _end_slow(self, client: socket.socket) -> None:
        self._loop.remove_reader(client)
        self._slow.pop(client).cancel()
        client.close()
        self._tls.under_way -= 1

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._handshakes.discard(task)
        self._tls.under_way -= 1

    async def _shake_hands(self, client: socket.socket, address: str, within_s: float) -> None:
        certificates = self._tls.certificates
        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(
                lambda: self._make(certificates),
                client,
                ssl=certificates.context,
                ssl_handshake_timeout=within_s,
                ssl_shutdown_timeout=_CLOSED_WITHIN_S,
            )
        except asyncio.CancelledError:
            client.close()
            raise
        except OSError as error:
            with contextlib.suppress(OSError):
                client.close()
            self._tls.note_failure(error, address)
            return
        self._tls.handshakes["done"] += 1


def _record_bytes(sent: bytes) -> int:
    """Return the size of the TLS record that a client's bytes begin with; the header's size if that is not known yet.

    0 if it is no record of a handshake, or nothing was sent.
    """
    if sent[:1] != _HANDSHAKE or (len(sent) > 1 and sent[1:2] != _VERSION):
        return 0
    if len(sent) < _HEADER_BYTES:
        return _HEADER_BYTES
    content_bytes = int.from_bytes(sent[3:_HEADER_BYTES], "big")
    return _HEADER_BYTES + content_bytes if 0 < content_bytes <= _CONTENT_BYTES_MAX else 0


def _call_when_there(client: socket.socket, size_bytes: int) -> None:
    """Have the system report a client as readable only once this many bytes are there, or the client has ended."""
    # If the system cannot do that, `_look` looks again after a pause.
    with contextlib.suppress(OSError):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size_bytes)


def _sends_no_more(client: socket.socket) -> bool:
    """Whether a client has ended its half of the connection."""
    ended = select.poll()
    ended.register(client, select.POLLRDHUP)
    return bool(ended.poll(0))
