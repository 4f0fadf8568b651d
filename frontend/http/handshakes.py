"""Connections over TLS: accepted and counted here, and made connections of the server once they have shaken hands.

The server's own way to accept counts a client only after its handshake, and has one certificate for all of them.
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
"""After an accept that failed otherwise, as it does when there are too many open files."""
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
        self._handshakes: set[asyncio.Task[None]] = set()
        listener.setblocking(False)
        self._accepting = self._loop.create_task(self._accept())

    def close(self) -> None:
        """Accept no more, and end handshakes that are under way."""
        for each in (self._accepting, *self._handshakes):
            each.cancel()

    async def wait_closed(self) -> None:
        """Wait until nothing of it runs any more."""
        await asyncio.gather(self._accepting, *self._handshakes, return_exceptions=True)

    async def _accept(self) -> None:
        while True:
            try:
                client, address = await self._loop.sock_accept(self._listener)
            except OSError as error:
                if error.errno in _OF_ONE_CLIENT:
                    continue
                _log.warning("no connection can be accepted: %s", error.strerror or error)
                await asyncio.sleep(_AGAIN_S)
                continue
            if len(self._connections) + self._tls.under_way >= self._limit:
                self._tls.handshakes["full"] += 1
                client.close()
                continue
            task = self._loop.create_task(self._shake_hands(client, str(address[0])))
            self._handshakes.add(task)
            self._tls.under_way += 1
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._handshakes.discard(task)
        self._tls.under_way -= 1

    async def _shake_hands(self, client: socket.socket, address: str) -> None:
        certificates = self._tls.certificates
        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(
                lambda: self._make(certificates),
                client,
                ssl=certificates.context,
                ssl_handshake_timeout=HANDSHAKE_S,
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
