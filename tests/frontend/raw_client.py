"""A client at the level of bytes: what no library would send."""

import socket
import ssl
from typing import NamedTuple

PATIENCE_S = 60.0


class Response(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class RawClient:
    """One connection. context: over TLS with this."""

    def __init__(self, address: tuple[str, int], context: ssl.SSLContext | None = None) -> None:
        self.socket = socket.create_connection(address, timeout=PATIENCE_S)
        if context is not None:
            try:
                self.socket = context.wrap_socket(self.socket, server_hostname=address[0])
            except BaseException:
                self.socket.close()
                raise
        self._rest = b""

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def post(self, path: str, body: bytes, content_type: str = "application/json", *headers: str) -> None:
        """Send a request with a length."""
        self.send(head(path, content_type, f"Content-Length: {len(body)}", *headers) + body)

    def line(self) -> bytes:
        """Up to a line feed; empty at the end."""
        while b"\n" not in self._rest:
            data = self.socket.recv(1 << 16)
            if not data:
                break
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line.rstrip(b"\r")

    def response(self) -> Response:
        """A whole response."""
        status, headers = self.head()
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while piece := self.chunk():
                body += piece
            return Response(status, headers, body)
        return Response(status, headers, self.exactly(int(headers.get("content-length", "0"))))

    def head(self) -> tuple[int, dict[str, str]]:
        status = int(self.line().split()[1])
        if status == 100:
            assert self.line() == b""
            return self.head()
        headers: dict[str, str] = {}
        while line := self.line():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        return status, headers

    def chunk(self) -> bytes:
        """The next chunk of a chunked body; empty at its end."""
        size_bytes = int(self.line(), 16)
        piece = self.exactly(size_bytes)
        self.exactly(2)
        return piece

    def exactly(self, size_bytes: int) -> bytes:
        while len(self._rest) < size_bytes:
            data = self.socket.recv(1 << 16)
            assert data, "the connection ended"
            self._rest += data
        taken, self._rest = self._rest[:size_bytes], self._rest[size_bytes:]
        return taken

    def is_ended(self) -> bool:
        """Wait until the server ends the connection; False where it sends something first."""
        try:
            return self._rest == b"" and self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


def head(path: str, content_type: str, *headers: str) -> bytes:
    lines = (f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Type: {content_type}", *headers)
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"


def chunked(*pieces: bytes, end: bool = True) -> bytes:
    """Pieces of a body in chunked encoding."""
    sent = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return sent + (b"0\r\n\r\n" if end else b"")
