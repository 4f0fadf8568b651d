"""The table of HTTP routes: what it finds is what a literal reading of its rows says; contradictions are refused."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railgun.access.routes import Route, RouteMatch, Routes
from railgun.access.scopes import OPEN

ROWS = (
    Route("GET", "/a", "show_a", "x", OPEN),
    Route("POST", "/a", "make_a", "x", OPEN),
    Route("GET", "/a/{one}", "show_one", "x", OPEN),
    Route("GET", "/a/{one}/b", "show_b", "x", OPEN),
    Route("DELETE", "/a/{one}/c/{two}", "drop_two", "x", OPEN),
    Route("POST", "/a/{one}/c/{two}/d", "make_d", "y", OPEN),
    Route("GET", "/b.json", "show_json", "y", OPEN),
    Route("GET", "/", "show_root", "y", OPEN),
)
ROUTES = Routes(ROWS)
PARTS = st.sampled_from(
    ["a", "b", "c", "d", "A", "b.json", "bxjson", "{one}", "", " ", "\n", "%2F", "?", "ü"]
)
PATHS = st.lists(PARTS, max_size=6).map("/".join) | st.text(st.sampled_from("/abcd.\n"), max_size=12)
METHODS = st.sampled_from(["GET", "HEAD", "POST", "DELETE", "PUT", "get", ""])


def reading(rows: Sequence[Route], method: str, path: str) -> RouteMatch:
    """What the rows say, one after another."""
    found: dict[str, Route] = {}
    parameters: dict[str, str] = {}
    for row in rows:
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(row.path))
        if matching := re.fullmatch(pattern, path):
            found[row.method], parameters = row, matching.groupdict()
    return RouteMatch(found.get("GET" if method == "HEAD" else method), found, parameters)


@given(method=METHODS, path=PATHS | PATHS.map("/".__add__))
def test_what_is_found(method: str, path: str) -> None:
    assert ROUTES.find(method, path) == reading(ROWS, method, path)


def test_methods_of_a_path() -> None:
    assert ROUTES.find("PUT", "/a").methods == ["GET", "HEAD", "POST"]
    assert ROUTES.find("PUT", "/a/1/c/2").methods == ["DELETE"]


def test_all_rows_are_found() -> None:
    assert tuple(ROUTES) == ROWS
    assert ROUTES.find("GET", "/d").served_by is None
    for row in ROWS:
        found = ROUTES.find(row.method, row.path.replace("{one}", "1").replace("{two}", "2"))
        assert found.route is row
        assert found.served_by == row.served_by
        assert found.parameters == {
            name: text for name, text in [("one", "1"), ("two", "2")] if name in row.path
        }


@pytest.mark.parametrize(
    "row",
    [
        Route("GET", "/a", "show_all", "x", OPEN),
        Route("GET", "/a/b", "show_b", "x", OPEN),
        Route("PUT", "/a/{other}", "put_one", "x", OPEN),
        Route("GET", "/a/{other}/more", "show_more", "x", OPEN),
        Route("PUT", "/a/{one}/c/d", "put_d", "x", OPEN),
        Route("PUT", "/{any}", "put_any", "x", OPEN),
        Route("PUT", "/a", "put_a", "y", OPEN),
        Route("HEAD", "/b.json", "show_json", "y", OPEN),
    ],
)
def test_rows_that_contradict_others(row: Route) -> None:
    with pytest.raises(ValueError):
        Routes((*ROWS, row))
    with pytest.raises(ValueError):
        Routes((row, *ROWS))


def test_every_row_has_a_handler_and_every_handler_a_row() -> None:
    assert ROUTES.rows_of("y") == ROWS[-3:]
    assert list(ROUTES.bind("y", {"show_root": 1, "show_json": 2, "make_d": 3}).items()) == [
        (ROWS[-3], 3),
        (ROWS[-2], 2),
        (ROWS[-1], 1),
    ]
    with pytest.raises(ValueError, match=r"^y: .*: show_root$"):
        ROUTES.bind("y", {"show_json": 2, "make_d": 3})
    with pytest.raises(ValueError, match=r"^y: .*: more$"):
        ROUTES.bind("y", {"show_root": 1, "show_json": 2, "make_d": 3, "more": 4})
