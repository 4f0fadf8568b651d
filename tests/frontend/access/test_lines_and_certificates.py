"""Lines that run for long end when the certificate of their client is good no more, whether there are tokens or not."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from frontend.http import connection
from railgun.config.access import certificates_of
from railgun.config.settings import HttpSettings, TlsSettings
from tests.certificates import DAY, Authority, Pair
from tests.frontend.access.test_requests_under_way import lines
from tests.frontend.access.test_tls import Files, tls_of
from tests.frontend.raw_client import RawClient, chunked
from tests.frontend.serving import Server, until

HEAD = (
    b"POST /v1/streams/s/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
LINE = b'{"k": "a"}\n'


@pytest.fixture
def files(tmp_path: Path) -> Files:
    found = Files(tmp_path)
    found.crl.write_bytes(found.clients.revoking())
    return found


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontend.http.line_stream.CHECK_S", 0.05)


@contextmanager
def serving(files: Files, tls: TlsSettings, pair: Pair | None) -> Iterator[Server]:
    with files.serve(tls, context=files.context(pair)) as running:
        running.define('[streams.s]\npartitioners = ["k"]\n[streams.s.fields]\nk = "string"\n')
        yield running


@contextmanager
def streaming(running: Server, files: Files, pair: Pair | None) -> Iterator[RawClient]:
    """A client that has had the reply to a line, of more to come."""
    with RawClient(running.address, files.context(pair)) as client:
        client.send(HEAD + chunked(LINE, end=False))
        assert client.head()[0] == 200
        assert "metrics" in json.loads(client.chunk())
        yield client


def replaced(running: Server, tls: TlsSettings) -> None:
    """As a reload does it, where there are no tokens."""
    certificates = certificates_of(HttpSettings(anonymous=True, tls=tls))
    assert certificates is not None
    needs = certificates.clients is not None
    tls_of(running).replace(
        certificates, partial(running.service.application.guard.replace, (), needs_certificate=needs)
    )


def revoked(running: Server, files: Files, pair: Pair | None) -> None:
    assert pair is not None
    files.crl.write_bytes(files.clients.revoking(pair))
    replaced(running, files.settings(crl=True))


def of_another_ca(running: Server, files: Files, pair: Pair | None) -> None:
    files.clients = Authority(files.folder, "others")
    files.crl.write_bytes(files.clients.revoking())
    replaced(running, files.settings(crl=True))


@pytest.mark.parametrize("is_sending", [True, False])
@pytest.mark.parametrize("change", [revoked, of_another_ca])
def test_other_clients_are_good(
    files: Files, change: Callable[[Server, Files, Pair | None], None], is_sending: bool
) -> None:
    """Those who are good still are told too that they are to connect again: nobody knows who they are."""
    pair = files.clients.pair()
    with (
        serving(files, files.settings(crl=True), pair) as running,
        streaming(running, files, pair) as client,
    ):
        change(running, files, pair)
        if is_sending:
            client.send(chunked(LINE, end=False))
        (problem,) = lines(client)
        assert (problem["status"], problem["title"]) == (503, "Service Unavailable")
        assert "send what has no answer again, on another connection" in problem["detail"]
        assert client.is_ended()
        until(lambda: running.service.application.in_flight.size_bytes == 0)


@pytest.mark.parametrize("is_sending", [True, False])
def test_certificates_are_needed_from_now_on(files: Files, is_sending: bool) -> None:
    with serving(files, files.settings(), None) as running, streaming(running, files, None) as client:
        replaced(running, files.settings(clients=True))
        if is_sending:
            client.send(chunked(LINE, end=False))
        (problem,) = lines(client)
        assert problem["status"] == 403
        assert problem["detail"].startswith("a client's certificate is needed")


@pytest.mark.parametrize("is_sending", [True, False])
def test_the_certificate_runs_out(files: Files, monkeypatch: pytest.MonkeyPatch, is_sending: bool) -> None:
    pair = files.clients.pair(until=DAY)
    clock = SimpleNamespace(time=lambda: now_s)
    now_s = end_s = pair.leaf.not_valid_after_utc.timestamp()
    monkeypatch.setattr(connection, "time", clock)
    with (
        serving(files, files.settings(clients=True), pair) as running,
        streaming(running, files, pair) as client,
    ):
        now_s = end_s + 1
        if is_sending:
            client.send(chunked(LINE, end=False))
        (problem,) = lines(client)
        assert problem["status"] == 403


def test_lines_of_which_none_was_taken_are_to_be_sent_again(files: Files) -> None:
    pair = files.clients.pair()
    with (
        serving(files, files.settings(crl=True), pair) as running,
        RawClient(running.address, files.context(pair)) as client,
    ):
        client.send(HEAD)
        until(lambda: under_way(running) == 1)
        revoked(running, files, files.clients.pair())
        response = client.response()
        assert (response.status, response.headers["retry-after"]) == (503, "1")
        assert client.is_ended()


def under_way(running: Server) -> int:
    """How many requests the application is at."""
    server: Any = running.service._server
    return sum(each.cycle is not None and not each.cycle.response_complete for each in server._connections())


def test_another_certificate_of_the_server_ends_nothing(files: Files) -> None:
    pair = files.clients.pair()
    with (
        serving(files, files.settings(crl=True), pair) as running,
        streaming(running, files, pair) as client,
    ):
        files.server = files.servers.pair()
        replaced(running, files.settings(crl=True))
        for _ in range(3):
            client.send(chunked(LINE, end=False))
            assert "metrics" in json.loads(client.chunk())
        client.send(chunked(LINE))
        assert ["metrics" in each for each in lines(client)] == [True]
