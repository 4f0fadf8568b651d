"""Who changed what: changes with the name of a token and an address, and lines of the log about the rest."""

import json
import logging
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from railgun.cli.log import as_text
from railgun.cli.main import main
from railgun.engine.engine import Engine
from tests.frontend.access.callers import FOREIGN, OWN, bearer, guarded
from tests.frontend.serving import Server, server

PLACE = f"/v1/streams/{OWN}"
SQL = f"SELECT count(*) AS n1 FROM {OWN} GROUP BY card OVER SLIDING 1 DAY"
STREAM = {"name": "made", "fields": {"a": "string"}}


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with guarded(tmp_path / "data", monkeypatch) as opened:
        yield opened


def sent(running: Server, name: str, method: str, path: str, body: Any = None) -> httpx.Response:
    headers = {"Authorization": bearer(name)}
    return running.client.request(method, path, json=body, headers=headers)


def logged(running: Server, query: str = "") -> list[dict[str, Any]]:
    response = sent(running, "operate", "GET", f"/v1/log{query}")
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["changes"]
    return found


def changed(running: Server) -> int:
    """Change something in every way; the place of the last change before."""
    (last, *_) = logged(running)
    for name, method, path, body in (
        ("define-all", "POST", "/v1/streams", STREAM),
        ("define-own", "PATCH", PLACE, {"lateness": "9s", "fields": {"note": "string"}}),
        ("define-own", "POST", f"{PLACE}/metrics", {"sql": SQL}),
        ("define-own", "POST", f"{PLACE}/metrics", {"sql": f"DERIVE n1 + 1 AS more FROM {OWN}"}),
        ("remove-own", "DELETE", f"{PLACE}/metrics/more", None),
        ("all", "DELETE", "/v1/streams/made", None),
    ):
        response = sent(running, name, method, path, body)
        assert response.is_success, response.text
    place: int = last["place"]
    return place


CHANGED = [
    ("drop_stream", "made", None, "all", "dropped, with its metrics and events"),
    ("drop", OWN, "more", "remove-own", "dropped"),
    ("derive", OWN, "more", "define-own", f"DERIVE n1 + 1 AS more FROM {OWN}"),
    ("add", OWN, "n1", "define-own", SQL),
    ("stream", OWN, None, "define-own", "lateness 5s -> 9s; fields added: note string"),
    ("stream", "made", None, "define-all", "created with 1 field"),
]


def test_each_change_has_a_name_an_address_and_a_time(running: Server) -> None:
    before_ms = time.time_ns() // 1_000_000
    before = changed(running)
    found = logged(running)[: len(CHANGED)]
    keys = ("kind", "stream", "name", "who", "what")
    assert [tuple(each[key] for key in keys) for each in found] == CHANGED
    assert {each["from"] for each in found} == {"127.0.0.1"}
    assert [each["place"] for each in found] == list(range(before + 6, before, -1))
    assert all(before_ms <= each["at_ms"] <= time.time_ns() // 1_000_000 for each in found)
    # The engine's own program made the streams of the test: it has no name.
    assert {(each["who"], each["from"]) for each in logged(running, f"?before={before + 1}")} == {
        (None, None)
    }


def test_what_changes_nothing_is_not_in_it(running: Server) -> None:
    sent(running, "define-all", "POST", "/v1/streams", STREAM)
    found = logged(running)
    assert sent(running, "define-all", "POST", "/v1/streams", STREAM).status_code == 200
    assert sent(running, "define-own", "POST", f"{PLACE}/explain", {"sql": SQL}).status_code == 200
    assert sent(running, "define-own", "DELETE", f"{PLACE}/metrics/none").status_code == 404
    assert logged(running) == found


def test_a_part_at_a_time(running: Server) -> None:
    changed(running)
    whole, parts = logged(running), list[dict[str, Any]]()
    while part := logged(running, "?limit=4" + (f"&before={parts[-1]['place']}" if parts else "")):
        assert len(part) <= 4
        parts += part
    assert parts == whole


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("limit=0", "limit: '0' is no whole number from 1 to 1000"),
        ("limit=1001", "limit: '1001' is no whole number from 1 to 1000"),
        ("limit=1&limit=2", "limit: it is there twice"),
        ("before=-1", "before: '-1' is no whole number from 1 to 9007199254740991"),
        ("since=1", "since: there is no such parameter; this route takes limit and before"),
    ],
)
def test_wrong_parameters(running: Server, query: str, said: str) -> None:
    response = sent(running, "operate", "GET", f"/v1/log?{query}")
    assert (response.status_code, response.json()["detail"]) == (422, said)


def test_it_is_kept(tmp_path: Path, running: Server) -> None:
    changed(running)
    found = logged(running)
    running.service.stop()
    while running.code is None:
        time.sleep(0.01)
    with Engine(tmp_path / "data") as engine:
        again = [(each.place, each.who, each.from_, each.what) for each in engine.change_log()]
    assert again == [(each["place"], each["who"], each["from"], each["what"]) for each in found]


def test_without_tokens_there_are_addresses_alone(tmp_path: Path) -> None:
    with server(tmp_path / "data") as running:
        assert running.post("/v1/streams", STREAM).status_code == 201
        (change,) = running.client.get("/v1/log").json()["changes"]
    assert (change["who"], change["from"]) == (None, "127.0.0.1")


def test_the_command(running: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed(running)
    file = tmp_path / "token"
    file.write_text(bearer("operate").removeprefix("Bearer "))
    file.chmod(0o600)
    words = ["log", "--url", running.service.url, "--token-file", str(file)]
    assert main([*words, "--limit", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == logged(running, "?limit=2")
    assert main([*words, "--before", "3"]) == 0
    assert capsys.readouterr().out == as_text(logged(running, "?before=3"))
    assert main([*words, "--limit", "0"]) == 2
    assert "limit: '0' is no whole number" in capsys.readouterr().err


def test_the_table() -> None:
    change = {"place": 1_234, "at_ms": 1_700_000_000_000, "who": "deploy", "from": "192.0.2.7", "kind": "add"}
    old = {"place": 1, "at_ms": None, "who": None, "from": None, "kind": "stream", "name": None}
    text = as_text(
        [
            {**change, "stream": "payments", "name": "n", "what": "SELECT " + "x" * 200},
            {**old, "stream": "payments", "what": "created with 1 field"},
        ]
    )
    assert text.splitlines() == [
        "  place  time                  who     from       of          what",
        f"  1,234  2023-11-14T22:13:20Z  deploy  192.0.2.7  payments/n  SELECT {'x' * 92}…",
        "  1      -                     -       -          payments    created with 1 field",
    ]
    assert as_text([]) == "no changes\n"


def audited(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, Any]]]:
    """The lines about changes, with their figures."""
    return [
        (each.getMessage(), each.__dict__["fields"])
        for each in caplog.records
        if each.name == "railgun.audit"
    ]


def refused(running: Server) -> dict[str, int]:
    """How many requests were refused, by status."""
    text = sent(running, "metrics", "GET", "/metrics").text
    found = re.findall(r'^railgun_requests_refused_total\{status="(\d+)"\} (\d+)\.0$', text, re.MULTILINE)
    return {status: int(count) for status, count in found}


VALUES = f"{PLACE}/values?partitioner=card&card=x"
EVENT = {"tx_id": "a", "ts": 1_700_000_000_000, "card": "c"}


def test_refusals_are_counted_and_those_that_matter_are_logged(
    running: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    before = refused(running)
    for name, method, path, status in (
        ("read-own", "DELETE", f"{PLACE}/metrics/n7", 403),
        ("wrong", "DELETE", f"{PLACE}?really=yes", 401),
        ("expired", "POST", "/v1/cluster/nodes/a%1B%0Ab/drain", 401),
        ("define-own", "POST", "/v1/streams", 403),
        ("read-own", "GET", VALUES, 403),
        ("read-own", "POST", f"{PLACE}/values", 403),
        ("wrong", "POST", f"{PLACE}/explain", 401),
        ("wrong", "POST", f"{PLACE}/events", 401),
        ("wrong", "GET", "/metrics", 401),
        ("wrong", "GET", "/none", 401),
    ):
        body = {"name": FOREIGN, "fields": {"a": "string"}} if path == "/v1/streams" else EVENT
        assert sent(running, name, method, path, body).status_code == status
    keys = ("request", "status", "who", "client")
    found = audited(caplog)
    assert [tuple(figures[key] for key in keys) for _, figures in found] == [
        (f"DELETE {PLACE}/metrics/n7", 403, "read-own", "127.0.0.1"),
        (f"DELETE {PLACE}", 401, None, "127.0.0.1"),
        ("POST /v1/cluster/nodes/a%1B%0Ab/drain", 401, "expired", "127.0.0.1"),
        ("POST /v1/streams", 403, "define-own", "127.0.0.1"),
        (f"GET {PLACE}/values", 403, "read-own", "127.0.0.1"),
        (f"POST {PLACE}/values", 403, "read-own", "127.0.0.1"),
        (f"POST {PLACE}/explain", 401, None, "127.0.0.1"),
        (f"POST {PLACE}/events", 401, None, "127.0.0.1"),
        ("GET /metrics", 401, None, "127.0.0.1"),
        ("GET /none", 401, None, "127.0.0.1"),
    ]
    assert found[0][0] == f"refused: the token lacks the scope define:{OWN}"
    assert found[3][0] == f"refused: the token lacks the scope define:{FOREIGN}"
    caplog.clear()
    # Who may only read asks for nothing that is anybody's secret.
    for name, method, path in (
        ("score-own", "GET", PLACE),
        ("read-own", "POST", f"{PLACE}/events"),
        ("read-own", "GET", "/metrics"),
    ):
        assert sent(running, name, method, path, EVENT).status_code == 403
    assert audited(caplog) == []
    assert refused(running) == {"401": before["401"] + 6, "403": before["403"] + 7, "421": before["421"]}


def test_deepenings_are_logged(running: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    sent(running, "all", "POST", f"{PLACE}/events", {"tx_id": "a", "ts": 1_700_000_000_000, "card": "c"})
    assert sent(running, "define-own", "POST", f"{PLACE}/deepening", {}).status_code == 200
    assert sent(running, "define-own", "DELETE", f"{PLACE}/deepening").status_code == 204
    figures = {"who": "define-own", "client": "127.0.0.1"}
    assert audited(caplog) == [
        (f"the deepening of {OWN} begins", figures),
        (f"the deepening of {OWN} is given up", figures),
    ]
