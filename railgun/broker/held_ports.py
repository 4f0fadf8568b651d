"""Holds a port of loopback for a process that is about to listen there."""

import errno
import socket

from railgun.broker.commands import HOST
from railgun.broker.errors import PortInUseError, StartError


def held_port(port: int = 0) -> socket.socket:
    """Return a socket that has the port, or a free one for 0, and does not listen.

    Until it is closed, nobody who asks the system for a free port is given this one. Who names it can listen there,
    with SO_REUSEADDR, as Java and asyncio do. Raises PortInUseError if somebody listens there, and StartError.
    """
    held = socket.socket()
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((HOST, port))
    except BaseException as error:
        held.close()
        if not isinstance(error, OSError):
            raise
        address = f"{HOST}:{port}"
        if error.errno == errno.EADDRINUSE:
            raise PortInUseError(address) from error
        raise StartError(
            address, f"it cannot listen there ({error.strerror})", "name another port with --port"
        ) from error
    return held


def number_of(held: socket.socket) -> int:
    """Return the number of a held port."""
    return int(held.getsockname()[1])
