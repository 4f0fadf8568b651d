"""The text of a failure, which may name what is of other streams, is told to those alone who may see all streams."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from frontend.backend.failures import FailureLog
from frontend.backend.readiness import Readiness
from frontend.embedded.problems import of_scoring
from railgun.access.guard import Caller
from railgun.access.scopes import Scopes
from railgun.config.settings import ConsoleSettings
from railgun.engine.engine import Engine
from railgun.engine.errors import FolderError
from railgun.engine.status import DeepeningStatus
from tests.frontend.access.callers import FOREIGN, OWN, bearer, guarded
from tests.frontend.raw_client import RawClient, chunked, head
from tests.frontend.serving import Server, server, until

FAILURE = f"data/streams/{FOREIGN}/card-0: damaged"
GENERAL = (
    "an error of the server, which its log names; a token with the scope metrics is told here what it is"
)
PLACE = f"/v1/streams/{OWN}"
EVENT = b'{"tx_id": "a", "ts": 1700000000000, "card": "c"}'
JSON, NDJSON = "application/json", "application/x-ndjson"
EVENTS = [
    ("", EVENT, JSON),
    ("?reply=none", EVENT, JSON),
    ("", b"[" + EVENT + b"]", JSON),
    ("", EVENT + b"\n", NDJSON),
    ("?reply=none", EVENT + b"\n", NDJSON),
]
"""The query, the body and its type."""


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with guarded(tmp_path / "data", monkeypatch, console=ConsoleSettings(samples=10)) as opened:
        yield opened


def failing(self: Engine, *_: Any, **more: Any) -> Any:
    raise FolderError(FAILURE)


def told(running: Server, name: str, method: str, path: str, body: bytes = b"", kind: str = JSON) -> str:
    headers = {"Authorization": bearer(name), "Content-Type": kind}
    response = running.client.request(method, path, content=body, headers=headers)
    assert (response.status_code, response.headers["retry-after"]) == (503, "1"), response.text
    return str(response.json()["detail"])


def test_a_request_that_fails(
    running: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for method in ("score_each", "streams", "metrics", "key_values", "drop_metric", "status"):
        monkeypatch.setattr(Engine, method, failing)
    for query, body, kind in EVENTS:
        for name, said in (("score-own", GENERAL), ("score-all", GENERAL), ("all", FAILURE)):
            assert told(running, name, "POST", f"{PLACE}/events{query}", body, kind) == said
    for name, said in (("read-own", GENERAL), ("metrics", FAILURE), ("operate", FAILURE), ("all", FAILURE)):
        assert told(running, name, "GET", "/v1/streams") == said
    for name, method, path in (
        ("read-own", "GET", f"{PLACE}/metrics"),
        ("inspect-own", "GET", f"{PLACE}/values?card=c"),
        ("define-own", "DELETE", f"{PLACE}/metrics/n7"),
    ):
        assert told(running, name, method, path) == GENERAL
        assert told(running, "all", method, path) == FAILURE
    assert f"a request failed: {FAILURE}" in caplog.text
    # It needs the scope, and includes it.
    assert told(running, "remove-own", "DELETE", f"{PLACE}/metrics/n7") == FAILURE


def test_a_defect_of_a_page(
    running: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def defect(self: Engine, *_: Any, **more: Any) -> Any:
        raise RuntimeError("nobody expected this")

    monkeypatch.setattr(Engine, "status", defect)
    # One connection, which goes on.
    for _ in range(2):
        response = running.client.get("/v1/status")
        assert (response.status_code, response.headers["content-type"]) == (500, "application/problem+json")
        assert response.json()["detail"] == "a defect of this program; the server's log shows where"
    # It is logged once it is answered.
    until(lambda: len([each for each in caplog.records if each.exc_info]) == 2)
    logged = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert [each.getMessage() for each in logged] == ["a defect: GET /v1/status"] * 2


def test_a_server_that_has_failed(running: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontend.http.service._Server.stop", lambda self: None)
    monkeypatch.setattr(running.backend.running, "readiness", lambda: Readiness(False, FAILURE, failed=True))
    for query, body, kind in EVENTS:
        for name, said in (("score-own", GENERAL), ("all", FAILURE)):
            assert told(running, name, "POST", f"{PLACE}/events{query}", body, kind) == said
    for name, said in (("score-own", GENERAL), ("metrics", FAILURE), ("wrong", "not ready")):
        assert told(running, name, "GET", "/readyz") == said


def test_whoever_is_not_told_what_it_is_is_told_what_to_do() -> None:
    error = of_scoring(FolderError(FAILURE), has_stopped=True)
    advice = (
        "; the events may count; sending them again is safe with their ids, and without an id field they would count "
        "once more"
    )
    assert (error.problem.detail, error.headers) == (GENERAL + advice, ())
    told_all = error.for_caller(Caller("monitoring", Scopes(("metrics",))))
    assert (told_all.problem.detail, told_all.headers) == (FAILURE + advice, ())


def test_a_failure_that_goes_on_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    times_s = iter([0.0, 1.0, 59.0, 60.0, 61.0, 62.0])
    log = FailureLog(lambda: next(times_s))
    for failure in ("a", "a", "a", "a", "b", "a"):
        log.note(failure)
    assert [each.getMessage() for each in caplog.records] == [
        f"a request failed: {failure}" for failure in ("a", "a", "b", "a")
    ]


def test_lines_that_fail_after_others(running: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, said in (("score-own", GENERAL), ("all", FAILURE)):
        sent = (NDJSON, "Transfer-Encoding: chunked", f"Authorization: {bearer(name)}")
        with RawClient(running.address) as client, monkeypatch.context() as patch:
            client.send(head(f"{PLACE}/events", *sent) + chunked(EVENT + b"\n", end=False))
            assert client.head()[0] == 200
            assert json.loads(client.chunk())["id"] == "a"
            patch.setattr(Engine, "score_each", failing)
            client.send(chunked(EVENT + b"\n", end=True))
            problem = json.loads(client.chunk())
            assert (problem["status"], problem["detail"]) == (503, said)
    # Those who look at the last events are not told either.
    found = running.client.get(f"{PLACE}/samples").json()
    assert [each["status"] for each in found["events"]] == [200, 200]


def test_without_tokens_everybody_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with server(tmp_path / "data") as running:
        monkeypatch.setattr(Engine, "streams", failing)
        assert running.client.get("/v1/streams").json()["detail"] == FAILURE


def test_a_deepening_that_came_to_nothing(
    running: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    place = f"{PLACE}/deepening"

    def standing(name: str, method: str = "GET", path: str = place) -> Any:
        headers = {"Authorization": bearer(name), "Content-Type": JSON}
        response = running.client.request(method, path, headers=headers, content=b"{}")
        assert response.is_success, response.text
        return response.json()

    monkeypatch.setattr(Engine, "deepen", failing)
    running.client.post(f"{PLACE}/events", json=json.loads(EVENT))
    assert standing("define-own", "POST")["failure"] is None
    standing("define-own", "POST", f"{place}/install")
    until(lambda: standing("read-own")["state"] == "failed")
    asked = (("read-own", "GET", place), ("define-own", "GET", place), ("define-own", "POST", place))
    for ask in asked:
        assert standing(*ask)["failure"] == GENERAL
    for name in ("remove-own", "all"):
        assert standing(name)["failure"] == FAILURE
    assert f"was not installed: {FAILURE}" in caplog.text
    # A task that does not follow says so by itself.
    damaged = DeepeningStatus(OWN, "h", 1, "damaged", "data", 0, FAILURE)
    monkeypatch.setattr(Engine, "deepening", lambda self, stream: damaged)
    for name, said in (("read-own", GENERAL), ("all", FAILURE)):
        assert standing(name)["failure"] == said
