"""Connections over TLS: accepted and counted here, and made connections of the server once they have shaken hands.

The server's own way to accept counts a client only after its handshake, and has one certificate for all of them. TLS
begins with the client's first byte: to one that says nothing belong a socket, a reader and a timer. The 50 objects and
300 KB of a TLS connection for each of thousands of these would make garbage collections stop the event loop for
40 ms.
"""

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Callable, Sized

from railgun.access.tls import HANDSHAKE_S, Certificates, Tls

_OF_ONE_CLIENT = frozenset({errno.ECONNABORTED, errno.EPROTO, errno.ECONNRESET})
"""An accept that failed says no more than that one client is gone."""
_AGAIN_S = 1.0
"""After one that failed otherwise, as it does when there are too many open files, or too many that are watched."""
_LEAST_S = 0.1
"""What a handshake has at least, whenever it begins."""
_CLOSED_WITHIN_S = 3_600.0
"""How long closing may take, for the event loop. Connections end sooner: they look at how much the client takes."""
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
        # Clients that have said nothing yet, and what ends each.
        self._silent: dict[socket.socket, asyncio.TimerHandle] = {}
        self._handshakes: set[asyncio.Task[None]] = set()
        listener.setblocking(False)
        self._accepting = self._loop.create_task(self._accept())

    def close(self) -> None:
        """Accept no more, and end handshakes that are under way."""
        for client in list(self._silent):
            self._end_silent(client)
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
            self._loop.add_reader(client, self._begin, client, address, due_s)
        except OSError:
            client.close()
            raise
        self._tls.under_way += 1
        self._silent[client] = self._loop.call_at(due_s, self._late, client)

    def _begin(self, client: socket.socket, address: str, due_s: float) -> None:
        """A client has said something, or has gone. due_s: until then the handshake has to be over."""
        try:
            has_gone = not client.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return
        except OSError:
            has_gone = True
        if has_gone:
            self._end_silent(client)
            self._tls.handshakes["failed"] += 1
            return
        self._loop.remove_reader(client)
        self._silent.pop(client).cancel()
        within_s = max(_LEAST_S, due_s - self._loop.time())
        task = self._loop.create_task(self._shake_hands(client, address, within_s))
        self._handshakes.add(task)
        task.add_done_callback(self._ended)

    def _late(self, client: socket.socket) -> None:
        self._end_silent(client)
        self._tls.handshakes["late"] += 1

    def _end_silent(self, client: socket.socket) -> None:
        self._loop.remove_reader(client)
        self._silent.pop(client).cancel()
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
