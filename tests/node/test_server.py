"""The table of a node's routes: each row is answered, and nothing else is."""

import contextlib
import logging
import socket
import time
from collections.abc import Iterator

import httpx
import pytest
from prometheus_client import Gauge

from railgun.access.guard import Guard
from railgun.config.settings import HttpSettings
from railgun.node import server
from railgun.node.server import ROUTES, serving
from tests.frontend.access.callers import token
from tests.frontend.serving import until

ANSWERS = {"metrics": b"# HELP seen ", "alive": b"alive\n", "ready": b"ready\n"}


def served(
    http: HttpSettings | None = None, guard: Guard | None = None
) -> contextlib.AbstractContextManager[str]:
    measured = Gauge("seen", "what is measured", registry=None)
    return serving("127.0.0.1", 0, measured, lambda: None, http or HttpSettings(), guard or Guard())


def test_a_port_in_use_is_named_with_its_setting() -> None:
    measured = Gauge("seen", "what is measured", registry=None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(OSError, match=rf"127\.0\.0\.1:{port}: .*in use; cluster\.metrics_host and"),
            serving("127.0.0.1", port, measured, lambda: None, HttpSettings(), Guard()),
        ):
            pass


def connected(url: str) -> socket.socket:
    host, _, port = url.removeprefix("http://").rpartition(":")
    return socket.create_connection((host, int(port)), timeout=60)


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with served() as url, httpx.Client(base_url=url, trust_env=False) as made:
        yield made


def test_each_row_is_answered(client: httpx.Client) -> None:
    assert [row.handler for row in ROUTES] == list(ANSWERS)
    for row in ROUTES:
        for path in (row.path, row.path + "?more=1"):
            answer = client.request(row.method, path)
            assert answer.status_code == 200
            assert answer.content.startswith(ANSWERS[row.handler])


@pytest.mark.parametrize(
    "path", ["", "/", "/more", *(row.path + end for row in ROUTES for end in ("/", "x", "/x"))]
)
def test_nothing_else_is_answered(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.text) == (404, "there are /metrics, /healthz and /readyz\n")


def test_a_head_is_answered_as_a_get_without_a_body(client: httpx.Client) -> None:
    for row in ROUTES:
        answer = client.head(row.path)
        assert (answer.status_code, answer.content) == (200, b"")
        assert int(answer.headers["content-length"]) > 0


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_other_methods(client: httpx.Client, method: str) -> None:
    for row in ROUTES:
        assert client.request(method, row.path).status_code == 501


def test_there_are_no_more_connections_than_may_be() -> None:
    with served(HttpSettings(connections_limit=2)) as url:
        with connected(url) as one, connected(url) as two:
            for each in (one, two):
                each.sendall(b"GET /healthz")
            with connected(url) as one_too_many:
                assert one_too_many.recv(1) == b""
            for each in (one, two):
                each.sendall(b" HTTP/1.1\r\n\r\n")
                assert each.recv(12) == b"HTTP/1.0 200"
        until(lambda: answers(url))


def answers(url: str) -> bool:
    """Whether a connection is free by now."""
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"{url}/healthz", trust_env=False).status_code == 200
    return False


def test_who_sends_bit_by_bit_does_not_keep_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REQUEST_S", 1.0)
    with served(HttpSettings(connections_limit=1)) as url, connected(url) as slow:
        slow.settimeout(0.05)

        def is_ended() -> bool:
            try:
                slow.sendall(b"x")
                return slow.recv(1) == b""
            except TimeoutError:
                return False
            except OSError:
                return True

        until(is_ended)
        until(lambda: answers(url))


def test_ends_are_warned_about_again_and_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of tokens and certificates, as they are then: those of a reload too."""
    monkeypatch.setattr(server, "WARN_EVERY_S", 0.1)
    guard = Guard()

    def said() -> list[str]:
        return [each.getMessage() for each in caplog.records if each.name == "railgun.node"]

    with caplog.at_level(logging.WARNING), served(guard=guard):
        assert said() == []
        guard.replace((token("soon", "metrics", expires_s=time.time() + 3_600),))
        until(lambda: len(said()) > 1)
    assert len(set(said())) == 1
    assert "soon" in said()[0]
