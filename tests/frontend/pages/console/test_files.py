"""The files of the console: how they are answered, how large they are, and what none of them does."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from frontend.pages.console.routes import FOLDER
from tests.frontend.raw_client import RawClient
from tests.frontend.serving import Server

LIMIT_BYTES = 300_000
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# What makes HTML or a program of a text, keeps a token beyond its tab, or leaves the server.
NOWHERE = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|document\.write|\beval\(|new Function|setHTML"
    r"|localStorage|indexedDB|cookie|WebSocket|EventSource|sendBeacon|serviceWorker|XMLHttpRequest|\bimport\(|style="
)
URLS = {"http://www.w3.org/2000/svg", "http://127.0.0.1:8081/"}
"""A name of a kind of elements, and what a text says."""
FILES = sorted(path.name for path in FOLDER.iterdir())


def places() -> Iterator[tuple[str, Path]]:
    yield "/", FOLDER / "index.html"
    for name in FILES:
        yield f"/console/{name}", FOLDER / name


@pytest.mark.parametrize(("place", "path"), list(places()), ids=[place for place, _ in places()])
def test_a_file_is_answered_with_its_kind_its_policy_and_its_tag(
    shared: Server, place: str, path: Path
) -> None:
    response = shared.client.get(place)
    assert response.status_code == 200
    assert response.content == path.read_bytes()
    assert response.headers["content-type"].partition(";")[0] == KINDS[path.suffix]
    assert POLICY in response.headers.get_list("content-security-policy")
    assert response.headers.get_list("cache-control") == ["no-cache"]
    tag = response.headers["etag"]
    for known in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        again = shared.client.get(place, headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert POLICY in again.headers.get_list("content-security-policy")
        assert again.headers.get_list("cache-control") == ["no-cache"]
    for other in ('"other"', tag.strip('"'), ""):
        assert shared.client.get(place, headers={"If-None-Match": other}).status_code == 200


@pytest.mark.parametrize(
    "file", ["nothing.js", "..%2Froutes.py", "%2e%2e", "shell.js%00", "files", "INDEX.HTML"]
)
def test_what_is_no_file_is_not_answered(shared: Server, file: str) -> None:
    with RawClient(shared.address) as client:
        client.send(f"GET /console/{file} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        response = client.response()
    assert response.status == 404
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["cache-control"] == "no-store"


def test_all_files_together_are_small() -> None:
    assert sum((FOLDER / name).stat().st_size for name in FILES) <= LIMIT_BYTES


@pytest.mark.parametrize("name", FILES)
def test_no_file_makes_html_of_text_or_names_another_place(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert not NOWHERE.findall(text)
    assert set(re.findall(r"https?://[^\s\"'`)<]*", text)) <= URLS


def test_each_file_that_is_named_is_there_and_each_is_named() -> None:
    named = {"index.html"}
    for name in FILES:
        text = (FOLDER / name).read_text(encoding="utf-8")
        named |= set(re.findall(r'"\./(\w+\.js)"', text)) | set(re.findall(r'"/console/([\w.]+)"', text))
    assert named == set(FILES)
