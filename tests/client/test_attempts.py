"""What a call sends again, when, and with which error it ends."""

import json

import pytest

from railgun.client import calls, operations
from railgun.client.errors import ClientError, ConnectionLostError, ProblemError, UnreachableError
from railgun.client.steps import Failure, Outcome, Request
from tests.client.played import URL, Played, answer, lost, refused, session

REPLY = b'{"id": "t1", "time": 1, "metrics": {"n": 1}}'
EVENT = {"tx": "t1"}
SAFE = "by its id it counts once, so it is safe to send it again"
WITH_ID = answer(b'{"name": "s", "id": "tx", "dedup_events": 1000}')
WITHOUT_ID = answer(b'{"name": "s", "id": null, "dedup_events": 1000}')


def problem(status: int, detail: str = "no", retry_after: str | None = None, took_s: float = 0.0) -> Outcome:
    return answer(
        json.dumps({"status": status, "detail": detail}).encode(), status, retry_after, took_s=took_s
    )


@pytest.mark.parametrize("status", [429, 503])
def test_what_there_was_no_room_for_is_sent_again_when_the_server_says(status: int) -> None:
    played = Played()
    outcomes = [problem(status, retry_after=after) for after in ("2", "soon", "0", "1000")]
    reply = played.run(calls.score(session(), "s", EVENT), [*outcomes, answer(REPLY)])
    assert reply["metrics"] == {"n": 1}
    assert played.pauses == [2.0, 0.5, 0.5, 10.0]
    assert len(set(played.requests)) == 1


def test_a_proxy_that_names_a_time_may_have_passed_the_event_on() -> None:
    busy = answer(b"<html>busy</html>", 503, "1")
    with pytest.raises(ConnectionLostError, match="no id field"):
        Played().run(calls.score(session(), "s", EVENT), [busy, WITHOUT_ID])
    Played().run(calls.score(session(), "s", EVENT), [busy, WITH_ID, answer(REPLY)])


def test_patience_ends() -> None:
    played = Played()
    with pytest.raises(ProblemError) as raised:
        played.run(
            calls.status(session(patience_s=12.0)),
            lambda _: problem(503, "too much at once", "5"),
        )
    assert played.pauses == [5.0, 5.0]
    gave_up = "gave up after 10 s; the server's log says why"
    assert str(raised.value) == f"{URL}/v1/status: too much at once; {gave_up}"
    assert (raised.value.status, raised.value.may_have_counted) == (503, False)


def test_patience_is_of_the_time_that_pauses_take() -> None:
    """On a busy machine they take longer than was asked for."""
    played = Played(busy=1.5)
    with pytest.raises(ProblemError, match="gave up after 9 s"):
        played.run(calls.status(session(patience_s=10.0)), lambda _: problem(503, retry_after="2"))
    assert played.pauses == [2.0] * 3


def test_patience_ends_also_where_it_is_the_server_that_takes_its_time() -> None:
    """A front-end whose broker is away answers after ten seconds, each time."""
    played = Played()
    with pytest.raises(ProblemError):
        played.run(
            calls.status(session(patience_s=25.0)),
            lambda _: problem(503, retry_after="1", took_s=10.0),
        )
    assert played.pauses == [1.0, 1.0]


def test_a_server_that_is_about_to_listen_is_waited_for_and_that_is_told_once() -> None:
    told: list[ClientError] = []
    asking = session(connects_within_s=2.0, on_wait=told.append)
    played = Played()
    played.run(calls.score(asking, "s", EVENT), [refused()] * 4 + [answer(REPLY)])
    assert played.pauses == [0.5] * 4
    assert [str(each) for each in told] == ["refused"]
    again = Played()
    with pytest.raises(UnreachableError, match=r"^refused; gave up after 2 s$") as raised:
        again.run(calls.score(asking, "s", EVENT), lambda _: refused())
    assert again.pauses == [0.5] * 4
    assert not raised.value.may_have_counted


def test_what_can_be_no_server_is_not_waited_for() -> None:
    played = Played()
    with pytest.raises(UnreachableError, match=r"not known$"):
        played.run(
            calls.status(session()),
            [Failure(UnreachableError("Name or service not known"), b"", 0.0)],
        )
    assert played.pauses == []


def test_an_event_with_an_id_is_sent_again_after_the_server_died() -> None:
    played = Played()
    outcomes = [lost(), refused(), refused(), problem(503, retry_after="1"), WITH_ID, answer(REPLY)]
    assert played.run(calls.score(session(), "s", EVENT), outcomes)["id"] == "t1"
    assert [(each.method, each.path) for each in played.requests] == [
        ("POST", "/v1/streams/s/events"),
        *[("GET", "/v1/streams/s")] * 4,
        ("POST", "/v1/streams/s/events"),
    ]
    assert played.pauses == [0.5, 0.5, 1.0]


def test_an_event_without_an_id_is_never_sent_twice() -> None:
    for outcome in (lost(), problem(503, "stopped meanwhile"), problem(502)):
        played = Played()
        with pytest.raises(ConnectionLostError) as raised:
            played.run(calls.score(session(), "s", EVENT), [outcome, WITHOUT_ID])
        assert [each.method for each in played.requests] == ["POST", "GET"]
        assert raised.value.may_have_counted
        assert str(raised.value).endswith(
            "; nobody knows whether it counted: s has no id field, so it is not sent again"
        )


def test_where_nobody_can_say_whether_there_is_an_id_it_is_not_sent_again() -> None:
    played = Played()
    with pytest.raises(ConnectionLostError, match=r"it is not known whether s has an id field \(.*read:s"):
        played.run(
            calls.score(session(), "s", EVENT), [lost(), problem(403, "the token lacks the scope read:s")]
        )
    assert len(played.requests) == 2


def test_a_program_can_say_that_there_is_an_id() -> None:
    played = Played()
    played.run(calls.score(session(ids=["s"]), "s", EVENT), [lost(), refused(), answer(REPLY)])
    assert [each.method for each in played.requests] == ["POST"] * 3
    assert played.pauses == [0.5, 0.5]


def test_more_events_than_ids_are_remembered_are_not_sent_again() -> None:
    few = answer(b'{"id": "tx", "dedup_events": 2}')
    for n, is_again in ((2, True), (3, False)):
        played, events = Played(), [EVENT] * n
        replies = answer(b"[" + b",".join([REPLY] * n) + b"]")
        if is_again:
            played.run(calls.score_batch(session(), "s", events), [lost(), few, replies])
        else:
            with pytest.raises(ConnectionLostError, match="remembers 2 ids, fewer than were sent"):
                played.run(calls.score_batch(session(), "s", events), [lost(), few])


def test_an_attempt_that_may_have_counted_is_not_forgotten_over_a_later_one() -> None:
    later: list[list[Outcome]] = [
        [refused()] * 30,
        [problem(401, "who are you")],
        [problem(429, retry_after="10")] * 9,
    ]
    for outcomes in later:
        played = Played()
        with pytest.raises(ConnectionLostError) as raised:
            played.run(calls.score(session(ids=["s"]), "s", EVENT), [lost(), *outcomes])
        assert raised.value.may_have_counted
        assert f"; nobody knows whether it was taken before that (lost): {SAFE}" in str(raised.value)


def test_where_patience_ends_and_there_are_ids_it_says_that_it_may_be_sent_again() -> None:
    for outcome in (lost(), problem(503, "stopped meanwhile")):
        with pytest.raises(ConnectionLostError) as raised:
            Played().run(calls.score(session(ids=["s"], patience_s=5.0), "s", EVENT), [outcome] * 20)
        gave_up = "gave up after 5 s; the server's log says why"
        assert str(raised.value).endswith(f"; nobody knows whether it counted: {SAFE}; {gave_up}")
    with pytest.raises(ConnectionLostError) as raised:
        Played().run(calls.score(session(), "s", EVENT), [lost(), *[refused()] * 30])
    assert str(raised.value).endswith(
        f"it is not known whether s has an id field (refused); if it has, {SAFE}"
    )
    # A read changes nothing.
    with pytest.raises(ConnectionLostError) as raised:
        Played().run(calls.status(session(patience_s=5.0)), [lost()] * 20)
    assert str(raised.value) == f"lost; {gave_up}"


def test_patience_is_for_a_call_with_all_that_it_looks_up() -> None:
    played = Played()
    with pytest.raises(ConnectionLostError):
        played.run(calls.score(session(patience_s=5.0), "s", EVENT), lambda _: lost())
    assert sum(played.pauses) <= 5.0


def test_a_time_limit_is_an_answer() -> None:
    late = {"status": 504, "detail": "no answer within 9 ms", "id": "t1", "partitioners": ["card"]}
    played = Played()
    with pytest.raises(ProblemError) as raised:
        played.run(
            calls.score(session(ids=["s"]), "s", EVENT, timeout_ms=9),
            [answer(json.dumps(late).encode(), 504)],
        )
    assert (raised.value.status, raised.value.id, raised.value.partitioners) == (504, "t1", ["card"])
    assert raised.value.may_have_counted
    assert len(played.requests) == 1


def test_reading_is_repeated_after_a_lost_connection_and_a_change_is_not() -> None:
    played = Played()
    assert played.run(calls.whoami(session()), [lost(), refused(), answer(b'{"name": "x"}')]) == {"name": "x"}
    for call in (
        calls.create_stream(session(), {"name": "s"}),
        calls.add_metrics(session(), "s", "SELECT"),
        operations.drain(session(), "n"),
    ):
        played = Played()
        with pytest.raises(ConnectionLostError, match=r"^lost$"):
            played.run(call, [lost()])
        assert len(played.requests) == 1


def test_a_server_that_has_stopped_is_not_waited_for() -> None:
    played = Played()
    with pytest.raises(ProblemError, match="disk full"):
        played.run(calls.status(session()), [problem(503, "disk full")])
    assert played.pauses == []


def test_a_refusal_is_one_line_with_the_places() -> None:
    errors = [{"loc": ["sql"], "msg": "line 1: no\nfield"}, {"loc": [], "msg": "and so on"}]
    said = {"title": "Unprocessable", "detail": "no query", "errors": errors}
    with pytest.raises(ProblemError) as raised:
        Played().run(calls.add_metrics(session(), "a/b", "SELECT"), [answer(json.dumps(said).encode(), 422)])
    assert str(raised.value) == (
        f"{URL}/v1/streams/a%2Fb/metrics: no query; sql: line 1: no\nfield; and so on"
    )
    assert raised.value.errors[0] == (("sql",), "line 1: no\nfield")
    assert not raised.value.may_have_counted


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b"{}", b""])
def test_a_refusal_that_is_no_problem_object(body: bytes) -> None:
    with pytest.raises(ProblemError, match="404"):
        Played().run(calls.status(session()), [answer(body, 404)])


@pytest.mark.parametrize("body", [b"<html>", b"", b"[]", b'"x"', b"\xff"])
def test_an_answer_that_is_no_reply(body: bytes) -> None:
    for call in (calls.status(session()), calls.score(session(), "s", EVENT)):
        with pytest.raises(ClientError, match="is this a Railgun server"):
            Played().run(call, [answer(body)])


def test_nobody_knows_what_became_of_an_event_whose_answer_cannot_be_read() -> None:
    for content in (b"[]", b"<html>"):
        with pytest.raises(ClientError) as raised:
            Played().run(calls.score(session(), "s", EVENT), [answer(content)])
        assert raised.value.may_have_counted
    with pytest.raises(ClientError, match="score_batch takes several"):
        Played().run(calls.score(session(), "s", [EVENT]), [answer(REPLY)])  # type: ignore[arg-type]


def test_a_batch_needs_an_answer_for_each_event() -> None:
    with pytest.raises(ClientError, match="1 answers to 2 events"):
        Played().run(calls.score_batch(session(), "s", [EVENT, EVENT]), [answer(b"[" + REPLY + b"]")])


def test_a_problem_stands_in_the_place_of_an_event_of_a_batch() -> None:
    refusal = b'{"title": "no", "status": 422, "detail": "bad one", "errors": []}'
    good, bad = Played().run(
        calls.score_batch(session(), "s", [EVENT, EVENT]), [answer(b"[" + REPLY + b"," + refusal + b"]")]
    )
    assert not isinstance(good, ProblemError)
    assert isinstance(bad, ProblemError)
    assert (bad.status, str(bad)) == (422, f"{URL}/v1/streams/s/events: bad one")


def test_integers_of_any_length_are_exact() -> None:
    reply = Played().run(
        calls.score(session(), "s", EVENT),
        [answer(b'{"id": 1, "time": 1, "metrics": {"n": 123456789012345678901234567890}}')],
    )
    assert reply["metrics"]["n"] == 123456789012345678901234567890


def test_an_address_is_shown_as_people_write_it() -> None:
    nothing = answer(b'{"detail": "there is no node \'x\'"}', 422)
    with pytest.raises(ProblemError, match=r"/v1/cluster/plan\?what_if=remove=node 2: there is no node"):
        Played().run(operations.what_if(session(), "remove=node 2"), [nothing])
    with pytest.raises(ProblemError, match="/v1/streams/größe/metrics: "):
        Played().run(calls.metrics(session(), "größe"), [nothing])


def test_requests_are_as_the_interface_says() -> None:
    played = Played()

    def server(request: Request) -> Outcome:
        return answer(b"[]" if request.path.endswith("s") else b"{}")

    played.run(calls.create_stream(session(), {"name": "s"}), server)
    played.run(calls.evolve_stream(session(), "s", {"lateness": "1s"}), server)
    assert played.run(calls.add_metrics(session(), "s", "SELECT 1"), server) == []
    assert played.run(calls.metrics(session(), "s"), server) == []
    assert played.run(calls.streams(session()), server) == []
    played.run(calls.drop_metric(session(), "s", "n"), server)
    played.run(calls.drop_stream(session(), "s"), server)
    path = "/v1/streams/s/events?metrics=a%2Cb&timeout_ms=200000&on_timeout=partial"
    played.run(
        calls.score(session(), "s", EVENT, metrics=["a", "b"], timeout_ms=200_000, on_timeout="partial"),
        [answer(REPLY)],
    )
    assert [(each.method, each.path) for each in played.requests] == [
        ("POST", "/v1/streams"),
        ("PATCH", "/v1/streams/s"),
        ("POST", "/v1/streams/s/metrics"),
        ("GET", "/v1/streams/s/metrics"),
        ("GET", "/v1/streams"),
        ("DELETE", "/v1/streams/s/metrics/n"),
        ("DELETE", "/v1/streams/s"),
        ("POST", path),
    ]
    assert {each.content_type for each in played.requests} == {"application/json"}
    assert json.loads(played.requests[2].content) == {"sql": "SELECT 1"}
    assert [played.requests[0].timeout_s, played.requests[-1].timeout_s] == [120.0, 205.0]
