"""The network of tests: what it carries comes whole and in order, as late as it is to be; it closes all it opened."""

import gc
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress

import pytest

from tests.broker.faulty_network import FaultyNetwork

_DELAY_S = 0.2
_MESSAGE = bytes(range(256)) * 2_000


@pytest.fixture
def network() -> Iterator[FaultyNetwork]:
    """One to a server that sends back what it gets."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_echo, args=[server])
        thread.start()
        made = FaultyNetwork(server.getsockname()[1], 1)
        with closing(made):
            yield made
        thread.join()


def _echo(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection, suppress(OSError):
        while data := connection.recv(1 << 16):
            connection.sendall(data)


def _round_trip_s(network: FaultyNetwork) -> float:
    """Send a message, and return how long it took to come back."""
    with socket.create_connection(("127.0.0.1", network.port)) as client:
        began_s = time.monotonic()
        sending = threading.Thread(target=client.sendall, args=[_MESSAGE])
        sending.start()
        got = b""
        while len(got) < len(_MESSAGE):
            got += client.recv(1 << 16)
        sending.join()
        assert got == _MESSAGE
        return time.monotonic() - began_s


def test_what_is_delayed_comes_whole_and_late(network: FaultyNetwork) -> None:
    network.delay_s = _DELAY_S
    assert _round_trip_s(network) >= 2 * _DELAY_S


def test_what_loses_packets_comes_whole_and_late(network: FaultyNetwork) -> None:
    network.loss = 0.1
    # Of so many packets some are lost.
    assert _round_trip_s(network) >= 0.2


@pytest.mark.parametrize("what", ["idle", "just accepted", "not read"])
def test_it_leaves_no_connection_open(what: str) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        network = FaultyNetwork(server.getsockname()[1], 1)
        clients = [socket.create_connection(("127.0.0.1", network.port)) for _ in range(8)]
        for client in clients:
            stack.enter_context(client)
        if what != "just accepted":
            stack.enter_context(server.accept()[0])
        if what == "not read":
            for client in clients:
                client.setblocking(False)
                with suppress(BlockingIOError):
                    while client.send(bytes(1 << 20)):
                        pass
        network.close()
        del network
        with pytest.MonkeyPatch.context() as patch:
            # A socket that nobody closed says so as it is collected.
            left: list[object] = []
            patch.setattr(sys, "unraisablehook", lambda raised: left.append(raised.exc_value))
            gc.collect()
        assert not left
