"""What a browser is told, and what pages of other sites may not do."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from frontend.http.routes import ROUTES
from frontend.http.service import AddressError, listen
from railgun.access.binding import ExposedError
from railgun.config.settings import HttpSettings
from tests.frontend.access.test_every_route import EVENT, EVENTS, JSON, length, path_of
from tests.frontend.conftest import Payments
from tests.frontend.raw_client import RawClient, Response
from tests.frontend.serving import Server, server

PROTECTS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def sent(running: Server, method: str, path: str, *headers: str, body: bytes = b"") -> Response:
    with RawClient(running.address) as client:
        lines = (f"{method} {path} HTTP/1.1", *headers)
        client.send("".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body)
        return client.response()


def test_every_answer_tells_browsers_what_not_to_do(shared: Server) -> None:
    for row in ROUTES:
        promised = () if row.method == "GET" else length(b"{}")
        response = sent(
            shared,
            row.method,
            path_of(row, "none"),
            "Host: localhost",
            *promised,
            body=b"{}" if promised else b"",
        )
        # The console's files are nobody's: a browser may keep them, and asks whether they are still good.
        is_file = row.handler in ("show_console", "console_file")
        protects = PROTECTS | ({"cache-control": "no-cache"} if is_file else {})
        assert {name: response.headers[name] for name in PROTECTS} == protects, row
    for headers in (("Host: evil.example.com",), ("Host: localhost", "bad header")):
        response = sent(shared, "GET", "/v1/streams", *headers)
        assert response.status in (421, 400)
        assert {name: response.headers[name] for name in PROTECTS} == PROTECTS
    response = sent(shared, "POST", EVENTS, "Host: localhost", *length(EVENT), body=EVENT)
    assert response.status == 200
    assert response.headers["content-security-policy"] == "frame-ancestors 'none'"
    assert {name: response.headers[name] for name in PROTECTS} == PROTECTS


def test_the_page_of_routes_keeps_to_its_policy(shared: Server) -> None:
    page = shared.client.get("/docs")
    policies = page.headers.get_list("content-security-policy")
    assert "frame-ancestors 'none'" in policies
    assert any(each.startswith("default-src 'none'; style-src 'self'") for each in policies)
    for inline in ("<style", "style=", "<script", "javascript:", "onclick", "http://", "https://"):
        assert inline not in page.text.lower()
    assert '<link rel="stylesheet" href="/docs.css">' in page.text
    style = shared.client.get("/docs.css")
    assert style.headers["content-type"].startswith("text/css")
    assert "font:" in style.text


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_names_that_others_lead_here(shared: Server, method: str) -> None:
    """DNS rebinding: a page's own name leads to this machine."""
    path = EVENTS if method == "POST" else "/v1/streams"
    promised = length(EVENT) if method == "POST" else ()
    response = sent(shared, method, path, "Host: evil.example.com:8080", *promised)
    assert response.status == 421
    assert "http.hosts" in json.loads(response.body)["detail"]
    for probe in ("/healthz", "/readyz"):
        assert sent(shared, "GET", probe, "Host: evil.example.com").status == 200


def test_pages_of_other_sites_change_nothing(shared: Server) -> None:
    host = f"Host: {shared.address[0]}:{shared.address[1]}"
    for headers in (
        ("Origin: http://evil.example.com",),
        ("Sec-Fetch-Site: cross-site",),
        ("Origin: null",),
        (f"Origin: http://{shared.address[0]}:1",),
    ):
        # As a form sends it, and as a script does.
        for kind in ("text/plain", JSON):
            response = sent(shared, "POST", EVENTS, host, *headers, *length(EVENT, kind))
            assert response.status == 403, headers
        response = sent(shared, "DELETE", "/v1/streams/payments", host, *headers)
        assert response.status == 403
        assert "access-control-allow-origin" not in response.headers
        preflight = sent(shared, "OPTIONS", EVENTS, host, *headers, "Access-Control-Request-Method: POST")
        assert "access-control-allow-origin" not in preflight.headers
        assert preflight.status in (403, 405)
    own = f"Origin: http://{shared.address[0]}:{shared.address[1]}"
    response = sent(
        shared, "POST", EVENTS, host, own, "Sec-Fetch-Site: same-origin", *length(EVENT), body=EVENT
    )
    assert response.status == 200


def test_configured_names(tmp_path: Path) -> None:
    with server(tmp_path / "data", hosts=("railgun.example.com",)) as running:
        assert sent(running, "GET", "/v1/streams", "Host: railgun.example.com:8080").status == 200
        assert sent(running, "GET", "/v1/streams", "Host: example.com").status == 421


# --- where a server may listen ---------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_nothing_listens_beyond_this_machine_without_tokens(host: str) -> None:
    with pytest.raises(ExposedError, match="RAILGUN_HTTP__ANONYMOUS=true"):
        listen(HttpSettings(host=host, port=0))


def test_whoever_says_so_listens_on_a_network() -> None:
    listen(HttpSettings(host="0.0.0.0", port=0, anonymous=True)).close()


def test_names_of_this_machine(payments: Payments) -> None:
    listen(HttpSettings(host="localhost", port=0)).close()
    with pytest.raises(AddressError):
        listen(HttpSettings(host="no.such.name.invalid", port=0))


def test_an_address_that_is_in_use() -> None:
    with (
        closing(listen(HttpSettings(host="localhost", port=0))) as other,
        pytest.raises(AddressError, match="Stop it, or name another address with --http HOST:PORT"),
    ):
        listen(HttpSettings(host="localhost", port=other.getsockname()[1]))


def test_anybody_on_a_network_is_still_closed_to_pages(tmp_path: Path) -> None:
    with server(tmp_path / "data", host="0.0.0.0", anonymous=True) as running:
        assert sent(running, "GET", "/v1/streams", "Host: evil.example.com").status == 421
        assert sent(running, "GET", "/v1/streams", "Host: 10.1.1.1").status == 200
