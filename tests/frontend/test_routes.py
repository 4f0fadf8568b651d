"""The table of routes: each row is answered as described, and nothing else is."""

import http.client
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute

from frontend.http.app import Application
from frontend.http.pages import pages_of
from frontend.http.routes import ROUTES, SCORE, ServedBy
from frontend.http.single_events import SingleEvents
from railgun.access.guard import Guard
from railgun.access.routes import Route, Routes
from railgun.access.scopes import OPEN
from railgun.config.settings import HttpSettings
from tests.frontend.no_backend import NO_BACKEND
from tests.frontend.serving import Server, server

QUERY = {"sql": "SELECT count(*) AS n FROM routed OVER INFINITE"}
# A request for each row, what its body is and which status the answer has. In this order: what is made is shown, then
# removed.
ASKED: list[tuple[str, str, Any, int]] = [
    ("POST", "create_stream", {"name": "routed", "fields": {"a": "long"}}, 201),
    ("GET", "list_streams", None, 200),
    ("GET", "show_stream", None, 200),
    ("PATCH", "evolve_stream", {"lateness": "6s"}, 200),
    ("POST", "add_metrics", QUERY, 201),
    ("GET", "list_metrics", None, 200),
    ("GET", "show_metric", None, 200),
    ("POST", "explain", QUERY, 200),
    ("GET", "show_plan", None, 200),
    ("GET", "show_answered", None, 200),
    ("POST", "score", {"a": 1}, 200),
    ("GET", "key_values", None, 200),
    ("POST", "values_of_keys", {"keys": [{}]}, 200),
    ("GET", "last_events", None, 200),
    # A server that scores in its own process reads no topics.
    ("GET", "dead_letters", None, 409),
    ("GET", "status", None, 200),
    ("GET", "show_deepening", None, 200),
    ("POST", "install_deepening", None, 409),
    ("POST", "begin_deepening", {"cut_ms": "soon"}, 422),
    ("DELETE", "give_up_deepening", None, 204),
    ("DELETE", "drop_metric", None, 204),
    ("DELETE", "drop_stream", None, 204),
    # A server that scores in its own process has no nodes.
    ("GET", "show_cluster", None, 409),
    ("GET", "what_if", None, 409),
    ("POST", "drain", None, 409),
    ("POST", "undrain", None, 409),
    ("POST", "accept_cut", {"stream": "s", "partitioner": "k", "partition": 0}, 409),
    ("POST", "accept_gap", {"stream": "s", "partitioner": "k", "partition": 0}, 409),
    ("GET", "show_console", None, 200),
    ("GET", "console_file", None, 200),
    ("GET", "openapi", None, 200),
    ("GET", "docs", None, 200),
    ("GET", "docs_style", None, 200),
    ("GET", "whoami", None, 200),
    ("GET", "change_log", None, 200),
    ("GET", "bundle", None, 200),
    ("GET", "alive", None, 200),
    ("GET", "ready", None, 200),
    ("GET", "metrics", None, 200),
    ("GET", "live", None, 200),
]
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
UNDESCRIBED = ("show_console", "console_file", "openapi", "docs", "docs_style")
"""Pages for people, and the description itself."""


def path_of(row: Route) -> str:
    return row.path.format(stream="routed", name="n", node="node-1", file="shell.js")


class Client:
    """One connection, over which paths go as they are."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._connection = http.client.HTTPConnection(*address, timeout=60)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, str], bytes]:
        sent = None if body is None else json.dumps(body)
        self._connection.request(method, path, sent, {"Content-Type": "application/json"} if sent else {})
        answer = self._connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, headers, answer.read()

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with server(tmp_path / "data", timeout_ms=60_000) as running:
        made = Client(running.address)
        try:
            yield made
        finally:
            made.close()


def test_each_row_is_answered(client: Client) -> None:
    rows = {(row.method, row.handler): row for row in ROUTES}
    assert sorted(rows) == sorted((method, handler) for method, handler, _, _ in ASKED)
    assert len(rows) == len(list(ROUTES))
    for method, handler, body, status in ASKED:
        found = client.ask(method, path_of(rows[method, handler]), body)
        assert found[0] == status, (handler, found)
        if method == "GET":
            only_head = client.ask("HEAD", path_of(rows[method, handler]))
            assert (only_head[0], only_head[2]) == (status, b""), handler
            assert only_head[1]["content-type"] == found[1]["content-type"]


def outside() -> Iterator[tuple[str, str, list[str]]]:
    """Requests that no row is for: method, path, and the methods that the path has."""
    paths = {path_of(row) for row in ROUTES}
    near = set()
    for path in paths:
        near |= {
            path + "/",
            path + "/more",
            "/" + path,
            path.upper(),
            path[:-1],
            path + "x",
            path + "%0A",
            path + "%3F",
        }
        near |= {path.replace("/routed", "/"), path.replace("/routed", ""), path.rpartition("/")[0] or "/"}
    # An empty path is sent as "/".
    for path in sorted((paths | near) - {""}):
        decoded = path.replace("%0A", "\n").replace("%3F", "?")
        for method in METHODS:
            found = ROUTES.find(method, decoded)
            if found.route is None:
                yield method, path, found.methods


def test_nothing_else_is_answered(client: Client) -> None:
    client.ask("POST", "/v1/streams", {"name": "routed", "fields": {"a": "long"}})
    requests = list(outside())
    assert {methods == [] for _, _, methods in requests} == {True, False}
    for method, path, methods in requests:
        status, headers, text = client.ask(method, path)
        assert (status, headers["content-type"]) == (405 if methods else 404, "application/problem+json"), (
            path
        )
        assert headers.get("allow", "") == ", ".join(methods)
        if method == "HEAD":
            continue
        detail = json.loads(text)["detail"]
        if methods:
            assert all(word in detail for word in methods if word != "HEAD")
        else:
            assert detail.startswith(f"there is no {method} {path[:1]}")
            assert ("no route ends in a slash" in detail) == path.endswith("/")


def test_the_description_has_all_rows(shared: Server) -> None:
    paths = shared.client.get("/openapi.json").json()["paths"]
    described = [(method.upper(), path) for path, each in paths.items() for method in each]
    rows = [(row.method, row.path) for row in ROUTES if row.handler not in UNDESCRIBED]
    assert sorted(described) == sorted(rows)
    assert list(paths) == list(dict.fromkeys(path for _, path in rows))


def test_pages_are_at_their_rows() -> None:
    pages = pages_of(NO_BACKEND, HttpSettings(), {}, lambda *_: None)
    made = [each for each in pages.routes if isinstance(each, APIRoute)]
    assert [(*each.methods, each.path, each.endpoint.__name__) for each in made] == [
        row[:3] for row in ROUTES.rows_of(ServedBy.PAGES)
    ]
    assert len(made) == len(pages.routes)


@pytest.mark.parametrize("url", ["/v1/streams/routed/events", "/v1/streams/routed/events?metrics=n"])
def test_single_events_are_at_their_row(url: str) -> None:
    events = SingleEvents(None, HttpSettings(), None, Guard())  # type: ignore[arg-type]
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"8")]
    admitted = events.admit(url.encode(), headers)
    assert admitted is not None
    assert admitted.target.found == ROUTES.find(SCORE.method, url.partition("?")[0])
    for method, path, _ in outside():
        if method == SCORE.method:
            assert events.admit(path.encode(), headers) is None


@pytest.mark.parametrize(
    ("part", "make"),
    [
        (ServedBy.PROBES, lambda: Application(NO_BACKEND, HttpSettings())),
        (ServedBy.PAGES, lambda: pages_of(NO_BACKEND, HttpSettings(), {}, lambda *_: None)),
    ],
)
def test_a_row_without_a_handler_is_noticed(
    part: ServedBy, make: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    more = Routes((*ROUTES, Route("GET", "/more", "show_more", part, OPEN)))
    monkeypatch.setattr("frontend.http.app.ROUTES", more)
    monkeypatch.setattr("frontend.http.pages.ROUTES", more)
    with pytest.raises(ValueError, match="show_more"):
        make()
