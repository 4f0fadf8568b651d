"""Recognizes a request in clear text at a port that speaks TLS, and answers it with the remedy."""

import json
import socket
from http import HTTPMethod

_BEGINNINGS = tuple(f"{each} ".encode() for each in HTTPMethod)
BEGINNING_BYTES = max(map(len, _BEGINNINGS))
"""The number of first bytes that distinguish a request in clear text from a handshake."""
_BODY = json.dumps(
    {
        "title": "Bad Request",
        "status": 400,
        "detail": "this port speaks TLS; write https:// in place of http://",
    }
).encode()
_ANSWER = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(_BODY), _BODY)
)
_READ_BYTES = 1 << 16


def is_clear_text(sent: bytes) -> bool:
    """True if the first bytes of a connection are the beginning of an HTTP request."""
    return sent.startswith(_BEGINNINGS)


def answer(client: socket.socket) -> None:
    """Tells the client to use https://. The caller must then close the connection.

    Raises OSError if the client is gone.
    """
    # If a socket is closed with unread data, the kernel resets the connection and the answer is lost.
    client.recv(_READ_BYTES)
    client.sendall(_ANSWER)
