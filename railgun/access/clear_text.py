"""A request in clear text to a port that speaks TLS: told from a handshake, and answered with what to write instead."""

import json
import socket
from http import HTTPMethod

_BEGINNINGS = tuple(f"{each} ".encode() for each in HTTPMethod)
BEGINNING_BYTES = max(map(len, _BEGINNINGS))
"""How much of what a client sends first tells whether it is a request in clear text."""
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
    """Whether the first bytes of a connection begin a request of HTTP, and no handshake."""
    return sent.startswith(_BEGINNINGS)


def answer(client: socket.socket) -> None:
    """Say what to write instead. The connection is to be closed then. Raises OSError, as where the client is gone."""
    # What is closed with something unread resets the connection, and takes the answer along.
    client.recv(_READ_BYTES)
    client.sendall(_ANSWER)
