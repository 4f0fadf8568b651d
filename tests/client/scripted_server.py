"""A socket that answers requests as a test says, byte for byte."""

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"


def ok(body: bytes) -> bytes:
    """A whole response."""
    return OK + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


@dataclass
class Scripted:
    """requests: heads and bodies that came, a connection's number before each.  connections: how many there were."""

    url: str
    requests: list[tuple[int, bytes, bytes]] = field(default_factory=list)
    connections: int = 0


@contextmanager
def scripted(*answers: bytes | None, otherwise: bytes = b"") -> Iterator[Scripted]:
    """Answers requests in turn; the connection ends behind an answer that is not whole. None: silence until the end.

    otherwise: the answer to requests beyond these.
    """
    left, over = list(answers), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = Scripted(f"http://127.0.0.1:{listening.getsockname()[1]}")
        threads: list[threading.Thread] = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection = listening.accept()[0]
                    server.connections += 1
                    number = server.connections
                    threads.append(threading.Thread(target=serve, args=(connection, number)))
                    threads[-1].start()

        def serve(connection: socket.socket, number: int) -> None:
            with connection, connection.makefile("rb") as received, suppress(OSError):
                connection.settimeout(60)
                while (request := _request(received.readline, received.read)) is not None:
                    server.requests.append((number, *request))
                    answer = left.pop(0) if left else otherwise
                    if answer is None:
                        over.wait(60)
                        return
                    connection.sendall(answer)
                    if not _is_whole(answer):
                        return

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield server
        finally:
            over.set()
            listening.shutdown(socket.SHUT_RDWR)
            for thread in [accepting, *threads]:
                thread.join()


def _request(read_line: Callable[[], bytes], read: Callable[[int], bytes]) -> tuple[bytes, bytes] | None:
    head, length = b"", 0
    while line := read_line():
        head += line
        if line.lower().startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
        if line == b"\r\n":
            return head, read(length)
    return None


def _is_whole(answer: bytes) -> bool:
    head, _, body = answer.partition(b"\r\n\r\n")
    said: Sequence[bytes] = head.partition(b"Content-Length: ")[2].split(b"\r\n")
    return bool(said[0]) and int(said[0]) == len(body)
