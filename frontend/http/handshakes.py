"""Connections over TLS: accepted and counted here, and made connections of the server once they have shaken hands.

The server's own way to accept counts a client only after its handshake, and has one certificate for all of them. TLS
begins once the client's first record is there as a whole: until then a socket, a reader and a timer belong to it. The
50 objects of a TLS connection for each of thousands of slow clients would make garbage collections stop the event loop
for 40 ms.
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
"""An accept that failed says no more than that one client is gone."""
_AGAIN_S = 1.0
"""After one that failed otherwise, as it does when there are too many open files, or too many that are watched."""
_LOOK_AGAIN_S = 0.1
"""When the system says too early that a record is there."""
_CLOSED_WITHIN_S = 3_600.0
"""How long closing may take, for the event loop. Connections end sooner: they look at how much the client takes."""
_HEADER_BYTES, _CONTENT_BYTES_MAX = 5, 1 << 14
"""Of a record of TLS (RFC 8446, 5.1)."""
_HANDSHAKE, _VERSION = b"\x16", b"\x03"
"""The first two bytes of a record of a handshake: its type, and the major version, which is that of SSL 3."""
_log = logging.getLogger("railgun.frontend")


class TlsServer:
    """Accepts connections until it is closed. listener: listens already, and is closed by its owner.

    connections: those that have shaken hands.  limit: of these and of handshakes under way; beyond it connections are
    closed at once.  make: the protocol of a connection, by the certificates that it shook hands with.
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
        # Clients whose first record is not there yet, and what ends each.
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
        """Wait until nothing of it runs any more."""
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
        """Have a client's handshake begin when it says something. Raises OSError, the client's connection closed."""
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
        """Look at what a client has sent once so many bytes are there, or it has ended."""
        if client in self._slow:
            self._loop.add_reader(client, self._look, client, address, due_s, size_bytes)

    def _look(self, client: socket.socket, address: str, due_s: float, awaited_bytes: int) -> None:
        """Begin the handshake if the first record is there. due_s: until then the handshake has to be over.

        awaited_bytes: how many have to be there before the system calls this.
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
            # Else the loop would be called for what is there already, again and again, until the rest is.
            _call_when_there(client, size_bytes)
            self._watch(client, address, due_s, size_bytes)
        else:
            # Where memory is short, for one, the system does not wait for all of them.
            self._loop.remove_reader(client)
            self._loop.call_later(_LOOK_AGAIN_S, self._watch, client, address, due_s, size_bytes)

    def _begin(self, client: socket.socket, address: str, due_s: float) -> None:
        self._loop.remove_reader(client)
        self._slow.pop(client).cancel()
        _call_when_there(client, 1)
        within_s = max(HANDSHAKE_LEAST_S, due_s - self._loop.time())
        task = self._loop.create_task(self._shake_hands(client, address, within_s))
        self._handshakes.add(task)
        task.add_done_callback(self._ended)

    def _late(self, client: socket.socket) -> None:
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
    """How long the record of TLS is that begins what was sent, as far as that tells: not less than its header.

    0: it is none of a handshake, or nothing was sent.
    """
    if sent[:1] != _HANDSHAKE or (len(sent) > 1 and sent[1:2] != _VERSION):
        return 0
    if len(sent) < _HEADER_BYTES:
        return _HEADER_BYTES
    content_bytes = int.from_bytes(sent[3:_HEADER_BYTES], "big")
    return _HEADER_BYTES + content_bytes if 0 < content_bytes <= _CONTENT_BYTES_MAX else 0


def _call_when_there(client: socket.socket, size_bytes: int) -> None:
    """Have the system say that there is something to read only when there is so much, or the client has ended."""
    # Where it cannot, it is looked at now and then.
    with contextlib.suppress(OSError):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size_bytes)


def _sends_no_more(client: socket.socket) -> bool:
    """Whether a client has ended its half of the connection."""
    ended = select.poll()
    ended.register(client, select.POLLRDHUP)
    return bool(ended.poll(0))
