"""TLS of a node's port: as that of a front-end, with the same certificates."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import Gauge

from railgun.access.tls import Tls, has_certificate
from railgun.config.access import certificates_of, guard_of, tls_of
from railgun.config.settings import HttpSettings, TlsSettings
from railgun.node import server
from railgun.node.server import serving
from tests.certificates import DAY, Authority, Pair
from tests.frontend.access.callers import bearer, tokens
from tests.frontend.raw_client import RawClient
from tests.frontend.serving import until

MEASURED = Gauge("seen_over_tls", "what is measured", registry=None)
TOKEN = {"Authorization": bearer("metrics")}


class Node:
    """A node's port with tokens and CAs of clients."""

    def __init__(self, folder: Path, limit: int = 100) -> None:
        self.servers, self.clients = Authority(folder, "servers"), Authority(folder, "clients")
        server = self.servers.pair()
        self.crl = folder / "crl.pem"
        self.crl.write_bytes(self.clients.revoking())
        settings = TlsSettings(
            str(server.certificate), str(server.key), str(self.clients.file), str(self.crl)
        )
        self.http = HttpSettings(tokens=tokens(), tls=settings, connections_limit=limit)
        found = tls_of(self.http)
        assert found is not None
        self.tls: Tls = found
        self.url = ""

    @contextlib.contextmanager
    def running(self) -> Iterator["Node"]:
        guard = guard_of(self.http)
        with serving("127.0.0.1", 0, MEASURED, lambda: None, self.http, guard, self.tls) as self.url:
            yield self

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("https://").rpartition(":")
        return host, int(port)

    def get(self, path: str, pair: Pair | None) -> httpx.Response:
        context = self.servers.client_context(pair)
        return httpx.get(self.url + path, headers=TOKEN, verify=context, trust_env=False, timeout=60)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with Node(tmp_path).running() as made:
        yield made


def test_certificates_and_tokens(node: Node) -> None:
    good = node.clients.pair()
    assert node.url.startswith("https://")
    text = node.get("/metrics", good).text
    assert "seen_over_tls" in text
    assert 'railgun_certificate_end_seconds{kind="client_crl"}' in text
    assert node.get("/metrics", None).status_code == 403
    assert [node.get(path, None).status_code for path in ("/healthz", "/readyz", "/none")] == [200, 200, 403]
    no_token = httpx.get(
        f"{node.url}/metrics", verify=node.servers.client_context(good), trust_env=False, timeout=60
    )
    assert no_token.status_code == 401
    in_clear = httpx.get(node.url.replace("https://", "http://"), trust_env=False, timeout=60)
    assert in_clear.status_code == 400
    assert "write https://" in in_clear.json()["detail"]


def test_bad_certificates_and_a_reload(node: Node, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    revoked, expired = node.clients.pair(), node.clients.pair(since=-3 * DAY, until=-DAY)
    assert node.get("/metrics", revoked).status_code == 200
    node.crl.write_bytes(node.clients.revoking(revoked))
    certificates = certificates_of(node.http)
    assert certificates is not None
    node.tls.replace(certificates)
    for pair in (revoked, expired, Authority(tmp_path, "others").pair()):
        with pytest.raises(httpx.TransportError):
            node.get("/healthz", pair)
    until(lambda: node.tls.handshakes["untrusted"] == 3)
    said = [each.getMessage() for each in caplog.records if each.name == "railgun.audit"]
    assert [each.partition("certificate: ")[2] for each in said[:2]] == [
        "certificate revoked",
        "certificate has expired",
    ]
    assert "Traceback" not in caplog.text


def test_a_slow_request_says_nothing(
    node: Node, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: Any
) -> None:
    monkeypatch.setattr(server, "REQUEST_S", 0.5)
    context = node.servers.client_context(node.clients.pair())
    with context.wrap_socket(
        socket.create_connection(node.address, timeout=60), server_hostname="localhost"
    ) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n")
        with contextlib.suppress(OSError):
            assert client.recv(1) == b""
    assert node.get("/healthz", node.clients.pair()).status_code == 200
    assert (capsys.readouterr().err, caplog.text) == ("", "")


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/none"])
def test_a_reload_between_the_handshake_and_the_request(node: Node, path: str) -> None:
    pair = node.clients.pair()
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {bearer('metrics')}\r\n\r\n".encode()
    with (
        RawClient(node.address, node.servers.client_context(pair)) as kept,
        RawClient(node.address, node.servers.client_context(pair)) as revoked,
    ):
        revoked.send(head[:10])
        until(lambda: node.tls.handshakes["done"] == 2)
        kept.send(head)
        assert kept.line().startswith(b"HTTP/1.0 ")
        node.crl.write_bytes(node.clients.revoking(pair))
        certificates = certificates_of(node.http)
        assert certificates is not None
        node.tls.replace(certificates)
        with contextlib.suppress(OSError):
            revoked.send(head[10:])
            assert revoked.line() == b""


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(server, "HANDSHAKE_S", 5.0)
    before = set(threading.enumerate())
    with Node(tmp_path, limit=3).running() as node:
        silent = [socket.create_connection(node.address, timeout=60) for _ in range(3)]
        until(lambda: len(set(threading.enumerate()) - before) == 4)
        with socket.create_connection(node.address, timeout=60) as one_too_many:
            assert one_too_many.recv(1) == b""
        assert node.tls.handshakes["full"] == 1
        # Each is let go once its handshake has taken too long.
        for each in silent:
            assert each.recv(1) == b""
            each.close()
        until(lambda: node.tls.handshakes["late"] == 3)
        assert node.get("/healthz", None).status_code == 200
        with contextlib.suppress(httpx.TransportError):
            httpx.get(node.url.replace("https", "http"), trust_env=False)
        until(lambda: node.tls.handshakes["failed"] == 1)
    assert capsys.readouterr().err == ""


def test_a_certificate_that_ran_out_since_the_handshake(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session of TLS 1.2 may be older than the end of the certificate that it began with."""
    pair = node.clients.pair(until=DAY)
    end_s = pair.leaf.not_valid_after_utc.timestamp()
    found: list[Callable[[float], bool]] = []

    def noted(secured: ssl.SSLSocket, now_s: float) -> tuple[bool, bool]:
        found.append(lambda at_s: has_certificate(secured, at_s))
        return found[0](end_s), not found[0](end_s + 1)

    monkeypatch.setattr(server, "has_certificate", lambda *given: all(noted(*given)))
    assert node.get("/metrics", pair).status_code == 200
    assert len(found) == 1
