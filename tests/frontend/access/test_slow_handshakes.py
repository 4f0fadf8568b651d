"""Clients whose first record of TLS comes slowly, by half, or not at all: they cost little, and are ended."""

import contextlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import railgun
from frontend.http import handshakes
from frontend.http.handshakes import TlsServer
from railgun import ClientError
from tests.frontend.access.test_tls import (
    ALIVE,
    Files,
    connected,
    counted,
    is_ended,
    open_connections,
    tls_of,
)
from tests.frontend.raw_client import RawClient
from tests.frontend.serving import Server, until

LOOKS_MAX = 12
"""At what a client sends in three pieces. A loop that is called for what is there already looks once per request."""
REQUESTS = 100


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture(autouse=True)
def _no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of these is ended for taking too long."""
    monkeypatch.setattr(handshakes, "HANDSHAKE_S", 3_000.0)


class Client:
    """A client of TLS that says when which of its bytes are sent. hello: the first ones."""

    def __init__(self, running: Server, context: ssl.SSLContext) -> None:
        self._in, self._out, self.bare = ssl.MemoryBIO(), ssl.MemoryBIO(), connected(running)
        self._tls = context.wrap_bio(self._in, self._out, server_hostname="127.0.0.1")
        with contextlib.suppress(ssl.SSLWantReadError):
            self._tls.do_handshake()
        self.hello = self._out.read()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.bare.close()

    def answered(self) -> bytes:
        """The first bytes of the answer to a request, once the hello is sent."""
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._exchange()
        self._tls.write(ALIVE)
        while True:
            try:
                return self._tls.read(15)
            except ssl.SSLWantReadError:
                self._exchange()

    def _exchange(self) -> None:
        self.bare.sendall(self._out.read())
        received = self.bare.recv(1 << 16)
        assert received, "the connection ended"
        self._in.write(received)


def tls_server(running: Server) -> TlsServer:
    assert running.service._server is not None
    (found,) = running.service._server.servers
    assert isinstance(found, TlsServer)
    return found


def looked_at(running: Server, files: Files) -> None:
    """Wait until the server has seen what was sent to it: it answers another client, and has no handshake any more."""
    with RawClient(running.address, files.context()) as client:
        client.send(ALIVE)
        assert client.response().status == 200
    until(lambda: not tls_server(running)._handshakes)


def pieces(hello: bytes) -> Iterator[bytes]:
    """A hello in three: a part of its header, the rest of it with a part of what follows, all else."""
    yield hello[:1]
    yield hello[1:20]
    yield hello[20:]


def test_who_comes_in_clear_text_is_told_what_to_write(files: Files) -> None:
    with files.serve() as running:
        plain = httpx.get(running.service.url.replace("https://", "http://"), trust_env=False, timeout=60)
        assert (plain.status_code, plain.headers["connection"]) == (400, "close")
        assert plain.json()["detail"] == "this port speaks TLS; write https:// in place of http://"
        until(lambda: counted(running).get("failed") == 1)
        assert tls_of(running).under_way == 0
        with (
            railgun.Client(f"http://127.0.0.1:{running.address[1]}") as client,
            pytest.raises(ClientError) as told,
        ):
            client.streams()
    assert "write https://" in str(told.value)


@pytest.mark.parametrize("system_waits", [True, False])
def test_tls_begins_with_a_whole_record(
    files: Files, monkeypatch: pytest.MonkeyPatch, system_waits: bool
) -> None:
    """Until then no handshake runs, whether or not the system can wait for a record."""
    if not system_waits:
        monkeypatch.setattr(handshakes, "_call_when_there", lambda client, size_bytes: None)
        monkeypatch.setattr(handshakes, "_LOOK_AGAIN_S", 0.01)
    with files.serve() as running, Client(running, files.context()) as client:
        for piece in pieces(client.hello):
            looked_at(running, files)
            client.bare.sendall(piece)
        assert client.answered() == b"HTTP/1.1 200 OK"
        until(lambda: tls_of(running).under_way == 0)
        assert "failed" not in counted(running)


@pytest.mark.parametrize("system_waits", [True, False])
def test_what_is_there_already_calls_the_loop_once(
    files: Files, monkeypatch: pytest.MonkeyPatch, system_waits: bool
) -> None:
    if not system_waits:
        monkeypatch.setattr(handshakes, "_call_when_there", lambda client, size_bytes: None)
    monkeypatch.setattr(handshakes, "_LOOK_AGAIN_S", 3_000.0)
    looked_at: list[object] = []
    look = TlsServer._look

    def noted(self: TlsServer, client: socket.socket, *more: Any) -> None:
        looked_at.append(client.getpeername())
        look(self, client, *more)

    monkeypatch.setattr(TlsServer, "_look", noted)
    with (
        files.serve() as running,
        RawClient(running.address, files.context()) as kept,
        Client(running, files.context()) as slow,
    ):
        for piece in (slow.hello[:1], slow.hello[1:20], slow.hello[20:30]):
            slow.bare.sendall(piece)
            for _ in range(REQUESTS):
                kept.send(ALIVE)
                assert kept.response().status == 200
        assert 0 < looked_at.count(slow.bare.getsockname()) <= LOOKS_MAX


@pytest.mark.parametrize("size_bytes", [15_000, 40_000])
def test_a_long_hello(files: Files, size_bytes: int) -> None:
    """As long as a record may be; of several records."""
    context = files.context()
    context.set_alpn_protocols([f"protocol-{each:06}" for each in range(size_bytes // 16)])
    with files.serve() as running, Client(running, context) as client:
        assert len(client.hello) > size_bytes
        looked_at(running, files)
        client.bare.sendall(client.hello[:10_000])
        looked_at(running, files)
        client.bare.sendall(client.hello[10_000:])
        assert client.answered() == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize(
    "sent",
    [b"GET", b"\x15", b"\x16\x02", b"\x16\x03\x01\x00\x00", b"\x16\x03\x01\x40\x01", b"\x16\x03\x01\xff\xff"],
)
def test_what_begins_no_handshake_is_ended_at_once(files: Files, sent: bytes) -> None:
    with files.serve() as running, connected(running) as client:
        client.sendall(sent)
        assert is_ended(client)
        until(lambda: counted(running).get("failed") == 1)
        assert tls_of(running).under_way == 0


@pytest.mark.parametrize("system_waits", [True, False])
@pytest.mark.parametrize("size_bytes", [1, 5, 100])
def test_a_client_that_ends_its_half_amid_the_hello_is_ended(
    files: Files, monkeypatch: pytest.MonkeyPatch, size_bytes: int, system_waits: bool
) -> None:
    """Whether that comes with what it sends, or later."""
    if not system_waits:
        monkeypatch.setattr(handshakes, "_call_when_there", lambda client, size_bytes: None)
    with files.serve() as running:
        with Client(running, files.context()) as client:
            client.bare.sendall(client.hello[:size_bytes])
            client.bare.shutdown(socket.SHUT_WR)
            until(lambda: counted(running).get("failed") == 1)
            assert is_ended(client.bare)
        with Client(running, files.context()) as client:
            client.bare.sendall(client.hello[:size_bytes])
            looked_at(running, files)
            client.bare.shutdown(socket.SHUT_WR)
            until(lambda: counted(running).get("failed") == 2)
        running.client.close()
        until(lambda: (tls_of(running).under_way, open_connections(running)) == (0, 0))


def test_a_stop_ends_slow_clients(files: Files) -> None:
    with files.serve(shutdown_grace_s=3_000.0) as running:
        with Client(running, files.context()) as client:
            client.bare.sendall(client.hello[:100])
            looked_at(running, files)
            running.service.stop()
            assert is_ended(client.bare)
        until(lambda: running.code is not None)
    assert running.code == 0
