"""What is asked of a caller after they were let in: not more than so many events, and a token that is still good."""

import contextlib
import json
import time
from typing import Any

import pytest

from frontend.access import permission
from frontend.http.routes import ROUTES
from railgun.access.refusals import refusals
from tests.frontend.access.callers import OWN, bearer, guarded, secret, token
from tests.frontend.access.test_every_route import EVENT, EVENTS, JSON, NDJSON, asked, head_of, length
from tests.frontend.raw_client import PATIENCE_S, RawClient, chunked
from tests.frontend.serving import Server, until

CHUNKED = (f"Content-Type: {NDJSON}", "Transfer-Encoding: chunked")


def lines(client: RawClient) -> list[dict[str, Any]]:
    """The lines of an answer until it ends."""
    found = b""
    while piece := client.chunk():
        found += piece
    return [json.loads(line) for line in found.splitlines()]


def begun(running: Server, client: RawClient, *who: str) -> None:
    """Send a line, of more to come, and take its reply."""
    client.send(head_of("POST", EVENTS, [bearer(each) for each in who], *CHUNKED))
    client.send(chunked(EVENT + b"\n", end=False))
    assert client.head()[0] == 200
    assert json.loads(client.chunk())["id"] == "a"


@pytest.mark.parametrize(
    ("changed", "status"),
    [([], 401), ([token("score-own", "read:*")], 403), ([token("score-own", "*", expires_s=1.0)], 401)],
)
@pytest.mark.parametrize("is_sending", [True, False])
def test_lines_end_where_the_token_does(
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    changed: Any,
    status: int,
    is_sending: bool,
) -> None:
    monkeypatch.setattr("frontend.http.line_stream.CHECK_S", 0.05)
    before = refusals.requests.copy()
    with guarded(tmp_path / "data", monkeypatch) as running, RawClient(running.address) as client:
        begun(running, client, "score-own")
        running.service.application.guard.replace([token("other", "*"), *changed])
        if is_sending:
            client.send(chunked(EVENT + b"\n", end=False))
        (problem,) = lines(client)
        assert problem["status"] == status
        assert secret("") not in json.dumps(problem)
        until(lambda: running.service.application.in_flight.size_bytes == 0)
    assert refusals.requests - before == {status: 1}
    logged = [each.__dict__["fields"] for each in caplog.records if each.name == "railgun.audit"]
    assert [each["request"] for each in logged] == ([f"POST {EVENTS}"] if status == 401 else [])


def test_lines_go_on_while_the_token_is_good(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontend.http.line_stream.CHECK_S", 0.01)
    with guarded(tmp_path / "data", monkeypatch) as running, RawClient(running.address) as client:
        begun(running, client, "score-own")
        running.service.application.guard.replace([token("score-own", f"score:{OWN}")])
        time.sleep(0.1)
        client.send(chunked(EVENT + b"\n" + EVENT + b"\n"))
        assert ["metrics" in each for each in lines(client)] == [True, True]


def test_lines_of_which_none_was_taken_are_refused_as_a_whole(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontend.http.line_stream.CHECK_S", 0.05)
    with guarded(tmp_path / "data", monkeypatch) as running, RawClient(running.address) as client:
        client.send(head_of("POST", EVENTS, [bearer("score-own")], *CHUNKED))
        until(lambda: running.service.application.guard is not None)
        time.sleep(0.02)
        before = refusals.requests.copy()
        running.service.application.guard.replace([token("other", "*")])
        response = client.response()
        assert response.status == 401
        assert refusals.requests - before == {401: 1}
        assert response.headers["www-authenticate"] == "Bearer"


def test_a_limit_of_events(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit counts events, however they come; others are not held up by it."""
    few = token("few", "score:*", limit_per_s=1)
    with guarded(
        tmp_path / "data", monkeypatch, tokens=(few, token("all", "*")), batch_limit_events=10
    ) as running:
        guard, now_s = running.service.application.guard, time.time()
        monkeypatch.setattr(guard, "_now_s", lambda: now_s)
        array = b"[" + b",".join([EVENT] * 9) + b"]"
        for body, status in ((array, 200), (EVENT, 200), (EVENT, 429), (array, 429)):
            response = asked(running, "POST", EVENTS, [bearer("few")], *length(body), body=body)
            assert response.status == status
        assert int(response.headers["retry-after"]) in range(1, 10)
        assert "the token few may send 1 events per second" in json.loads(response.body)["detail"]
        other = asked(running, "POST", EVENTS, [bearer("all")], *length(array), body=array)
        assert other.status == 200
        assert json.loads(asked(running, "GET", "/v1/whoami", [bearer("few")]).body)["limit_per_s"] == 1


def test_lines_are_slowed_by_a_limit_and_not_refused(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    few = token("few", "score:*", limit_per_s=1_000)
    body = (EVENT + b"\n") * 4_000
    with guarded(tmp_path / "data", monkeypatch, tokens=(few, token("all", "*"))) as running:
        # Its burst is what an array may hold: this takes it.
        array = b"[" + b",".join([EVENT] * 10_000) + b"]"
        began_s = time.monotonic()
        assert asked(running, "POST", EVENTS, [bearer("few")], *length(array), body=array).status == 200
        with RawClient(running.address) as client:
            client.send(head_of("POST", EVENTS, [bearer("few")], *length(body, NDJSON)) + body)
            assert client.head()[0] == 200
            found = lines(client)
        took_s = time.monotonic() - began_s
        assert ["metrics" in each for each in found] == [True] * 4_000
        assert took_s > 2.0
        assert permission.CHECK_S == 1.0


def test_more_lines_than_the_burst_leave_room_for_single_events(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, n = token("few", "score:*", limit_per_s=200), 800
    body = (EVENT + b"\n") * n
    with (
        guarded(
            tmp_path / "data", monkeypatch, tokens=(few, token("all", "*")), batch_limit_events=1
        ) as running,
        RawClient(running.address) as client,
    ):
        client.send(head_of("POST", EVENTS, [bearer("few")], *length(body, NDJSON)) + body)
        assert client.head()[0] == 200
        found = client.chunk()
        # The first lines are those of the burst, others wait by then.
        until(
            lambda: asked(running, "POST", EVENTS, [bearer("few")], *length(EVENT), body=EVENT).status == 200
        )
        client.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while piece := client.socket.recv(1 << 20):
                client._rest += piece
        client.socket.settimeout(PATIENCE_S)
        assert not client._rest.endswith(b"0\r\n\r\n"), "lines are to be on their way still"
        while piece := client.chunk():
            found += piece
        assert ["metrics" in json.loads(line) for line in found.splitlines()] == [True] * n
        # Nor do they leave a debt: others go on at once, or after a tenth of a second.
        guard = running.service.application.guard
        caller = guard.authorize(
            "GET", ROUTES.find("GET", "/v1/whoami"), [(b"authorization", bearer("few").encode())]
        )
        assert guard.wait_s(caller, 1) < 1.0


def test_what_there_is_no_room_for_does_not_count(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    few = token("few", "score:*", limit_per_s=1)
    array = b"[" + b",".join([EVENT] * 10) + b"]"
    with guarded(
        tmp_path / "data",
        monkeypatch,
        tokens=(few, token("all", "*")),
        batch_limit_events=10,
        in_flight_limit_events=10,
    ) as running:
        in_flight = running.service.application.in_flight
        in_flight.take(10, 0)
        for body in (array, EVENT, array):
            refused = asked(running, "POST", EVENTS, [bearer("few")], *length(body), body=body)
            assert refused.status == 429
            assert "in flight" in json.loads(refused.body)["detail"]
        in_flight.release(10, 0)
        response = asked(running, "POST", EVENTS, [bearer("few")], *length(array), body=array)
        assert response.status == 200


def test_an_event_that_is_submitted_a_second_time_counts_once(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = token("few", "score:*", limit_per_s=1)
    with guarded(
        tmp_path / "data", monkeypatch, tokens=(few, token("all", "*")), batch_limit_events=10
    ) as running:

        def fails(*_: object, **__: object) -> None:
            raise OSError

        with monkeypatch.context() as broken:
            # Single events are handed to the application then.
            broken.setattr(running.backend.scoring, "submit", fails)
            for _ in range(5):
                assert (
                    asked(running, "POST", EVENTS, [bearer("few")], *length(EVENT, JSON), body=EVENT).status
                    == 200
                )
        array = b"[" + b",".join([EVENT] * 5) + b"]"
        assert asked(running, "POST", EVENTS, [bearer("few")], *length(array), body=array).status == 200


def test_a_single_event_above_the_limit_is_not_counted(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = token("few", "score:*", limit_per_s=1)
    with guarded(
        tmp_path / "data", monkeypatch, tokens=(few, token("all", "*")), batch_limit_events=1
    ) as running:
        statuses = [
            asked(running, "POST", EVENTS, [bearer("few")], *length(EVENT, JSON), body=EVENT).status
            for _ in range(5)
        ]
        assert statuses[0] == 200
        assert 429 in statuses
        assert running.service.application.in_flight.events == 0


def test_the_log_warns_of_tokens_that_end(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with guarded(tmp_path / "data", monkeypatch):
        until(lambda: "the token expired has expired; `railgun token new` makes another" in caplog.text)
    assert "clear text" not in caplog.text


def test_a_clock_that_jumps_over_the_end_of_a_token_and_back(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends_s = time.time() + 1_000.0
    limited = token("limited", "score:*", expires_s=ends_s, limit_per_s=1_000)
    with guarded(tmp_path / "data", monkeypatch, tokens=(limited, token("all", "*"))) as running:
        guard = running.service.application.single_events._guard
        now_s = ends_s - 1.0
        monkeypatch.setattr(guard, "_now_s", lambda: now_s)
        with RawClient(running.address) as kept:
            for now_s, status in (
                (ends_s - 1.0, 200),
                (ends_s, 401),
                (ends_s + 1e9, 401),
                (ends_s - 1.0, 200),
                (0.0, 200),
                (ends_s - 1.0, 200),
            ):
                kept.send(head_of("POST", EVENTS, [bearer("limited")], *length(EVENT, JSON)) + EVENT)
                assert kept.response().status == status, now_s
                warned = any("limited" in each and "has expired" in each for each in guard.warnings())
                assert warned == (status == 401)
