"""Heads of requests that nobody sends in good faith: each is refused, says nothing, and harms no other request."""

from pathlib import Path

import pytest

from railgun.access.browsers import Hosts
from tests.frontend.access.callers import bearer, guarded
from tests.frontend.access.test_every_route import EVENT, EVENTS, length
from tests.frontend.raw_client import RawClient

_MIB = b"x" * (1 << 20)
HOSTILE = {
    "a token of 1 MiB": b"Authorization: Bearer " + _MIB,
    "a scheme of 1 MiB": b"Authorization: " + _MIB + b" x",
    "a thousand tokens": b"\r\n".join([b"Authorization: " + bearer("all").encode()] * 1_000),
    "a token that goes on in the next line": b"Authorization: Bearer\r\n " + bearer("all").encode(),
    "a token with a null byte": b"Authorization: " + bearer("all").encode() + b"\x00",
    "a token in bytes that are no text": b"Authorization: Bearer \xff\xfe\x80",
    "a name with a space": b"Authorization : " + bearer("all").encode(),
    "an origin of 64 KiB": b"Origin: http://" + _MIB[: 64 << 10],
}


def test_each_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with guarded(tmp_path / "data", monkeypatch) as running:
        for what, header in HOSTILE.items():
            for method, path, promised in (("GET", "/v1/streams", ()), ("POST", EVENTS, length(EVENT))):
                with RawClient(running.address) as client:
                    head = "".join(
                        f"{line}\r\n" for line in (f"{method} {path} HTTP/1.1", "Host: x", *promised)
                    )
                    try:
                        client.send(head.encode() + header + b"\r\n\r\n" + (EVENT if promised else b""))
                        answer = client.response()
                    except (ConnectionError, TimeoutError, EOFError):
                        # It is closed in the middle of the head.
                        continue
                assert answer.status in (400, 401, 403, 431), (what, method, answer.status)
                assert b"payments" not in answer.body, what
        assert running.client.get("/v1/streams").status_code == 200


def test_what_only_looks_like_an_address_is_no_host() -> None:
    hosts = Hosts(["shop.example"])
    for good in (
        b"localhost",
        b"localhost:80",
        b"127.0.0.1:8080",
        b"[::1]",
        b"[::1]:8080",
        b"Shop.example.:1",
    ):
        assert hosts.are_trusted(good), good
    for bad in (
        b"[::1]evil.com",
        b"[localhost]x",
        b"127.0.0.1:evil.com",
        b"localhost:80:evil.com",
        b"",
        b"\0",
        b"[::1",
    ):
        assert not hosts.are_trusted(bad), bad
