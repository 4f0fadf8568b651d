"""An address at which nobody listens until the test says so; then it leads to a real one."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def bound() -> Iterator[socket.socket]:
    """A socket with an address of its own, where connections are refused as long as it does not listen."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held


@contextmanager
def leading_to(place: str, held: socket.socket) -> Iterator[None]:
    """Connections to the socket go to `place`, HOST:PORT, while the block runs."""
    host, _, port = place.rpartition(":")
    ends: list[socket.socket] = []
    held.listen()

    def accept() -> None:
        with suppress(OSError):
            while True:
                near, far = held.accept()[0], socket.create_connection((host, int(port)))
                ends.extend((near, far))
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=_copy, args=(source, target), daemon=True).start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield
    finally:
        held.shutdown(socket.SHUT_RDWR)
        accepting.join()
        for end in ends:
            end.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
