"""The client: what it sends again, and how it says what went wrong."""

import json
from collections.abc import Callable

import httpx
import pytest

from railgun.client.client import Client, url_from
from railgun.client.errors import ClientError, ConnectionLostError, ProblemError, UnreachableError

Answer = Callable[[httpx.Request], httpx.Response]


def client(answer: Answer, slept: list[float] | None = None, patience_s: float = 60.0) -> Client:
    slept = [] if slept is None else slept
    transport = httpx.MockTransport(answer)
    return Client("http://h:1", patience_s=patience_s, sleep=slept.append, transport=transport)


def refusing(status: int, headers: dict[str, str] | None = None, **problem: object) -> Answer:
    return lambda _: httpx.Response(status, headers=headers, json={"status": status, **problem})


@pytest.mark.parametrize(
    ("given", "environment", "url"),
    [
        (None, {}, "http://127.0.0.1:8080"),
        (None, {"RAILGUN_URL": "http://a:1/"}, "http://a:1"),
        ("https://b/x/", {"RAILGUN_URL": "http://a:1"}, "https://b/x"),
    ],
)
def test_the_address(given: str | None, environment: dict[str, str], url: str) -> None:
    assert url_from(given, environment) == url


@pytest.mark.parametrize(
    ("given", "environment", "message"),
    [
        (
            "localhost:8080",
            {},
            "--url: 'localhost:8080' is no address of a server; did you mean http://localhost:8080?",
        ),
        (None, {"RAILGUN_URL": "x"}, "RAILGUN_URL: 'x' is no address of a server; did you mean http://x?"),
        ("http://", {}, "--url: 'http://' names no host; write one as in http://127.0.0.1:8080"),
        ("http://a:b", {}, "--url: 'http://a:b' is no address of a server: Invalid port: 'b'"),
    ],
)
def test_no_address(given: str | None, environment: dict[str, str], message: str) -> None:
    with pytest.raises(ClientError) as raised:
        url_from(given, environment)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    "url",
    [
        "http://me:hunter2@h:1",
        "me:hunter2@h:1",
        "http://hunter2@h",
        "http://me:hun/ter2@h",
        "https://:hunter2@",
    ],
)
def test_an_address_with_a_password_is_refused_and_not_printed(url: str) -> None:
    for given, environment, place in ((url, {}, "--url"), (None, {"RAILGUN_URL": url}, "RAILGUN_URL")):
        with pytest.raises(ClientError) as raised:
            url_from(given, environment)
        assert str(raised.value) == (
            f"{place}: it has an @, and takes no user or password, which would be seen in lists of processes and in "
            "logs; give a token by --token-file or RAILGUN_TOKEN"
        )


@pytest.mark.parametrize("status", [429, 503])
def test_what_there_was_no_room_for_is_sent_again_when_the_server_says(status: int) -> None:
    answers = [
        httpx.Response(status, headers={"Retry-After": "2"}),
        httpx.Response(status, headers={"Retry-After": "soon"}),
        httpx.Response(status, headers={"Retry-After": "0"}),
        httpx.Response(200, content=b"{}\n"),
    ]
    slept: list[float] = []
    with client(lambda _: answers.pop(0), slept) as asked:
        assert asked.score_lines("s", b'{"a": 1}\n') == b"{}\n"
    assert slept == [2.0, 0.5, 0.5]


def test_patience_ends() -> None:
    slept: list[float] = []
    answer = refusing(503, {"Retry-After": "5"}, detail="too much at once")
    with client(answer, slept, patience_s=12.0) as asked, pytest.raises(ProblemError) as raised:
        asked.status()
    assert slept == [5.0, 5.0]
    assert str(raised.value) == "http://h:1/v1/status: too much at once"
    assert raised.value.status == 503


def test_patience_ends_also_where_it_is_the_server_that_takes_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A front-end whose broker is away answers after ten seconds, each time."""
    now, slept = [0.0], list[float]()
    monkeypatch.setattr("railgun.client.client.time.monotonic", lambda: now[0])

    def answer(request: httpx.Request) -> httpx.Response:
        now[0] += 10.0
        return httpx.Response(503, headers={"Retry-After": "1"})

    with client(answer, slept, patience_s=25.0) as asked, pytest.raises(ProblemError):
        asked.status()
    assert slept == [1.0, 1.0]


def test_a_server_that_is_about_to_listen_is_waited_for_and_that_is_told_once() -> None:
    answers: list[httpx.Response | None] = [None, None, None, None, httpx.Response(200, content=b"{}\n")]

    def answer(request: httpx.Request) -> httpx.Response:
        found = answers.pop(0)
        if found is None:
            raise httpx.ConnectError("[Errno 111] Connection refused") from ConnectionRefusedError()
        return found

    slept: list[float] = []
    told: list[ClientError] = []
    with Client(
        "http://h:1",
        connects_within_s=2.0,
        on_wait=told.append,
        sleep=slept.append,
        transport=httpx.MockTransport(answer),
    ) as asked:
        assert asked.score_lines("s", b"{}\n") == b"{}\n"
        assert slept == [0.5] * 4
        assert [str(each) for each in told] == ["http://h:1: connection refused; is a server running there?"]
        answers += [None] * 5
        with pytest.raises(UnreachableError, match="connection refused"):
            asked.status()
    assert slept == [0.5] * 8
    assert not answers


def test_what_can_be_no_server_is_not_waited_for() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("[Errno -2] Name or service not known")

    slept: list[float] = []
    transport = httpx.MockTransport(answer)
    with (
        Client("http://h:1", connects_within_s=2.0, sleep=slept.append, transport=transport) as asked,
        pytest.raises(UnreachableError, match="not known"),
    ):
        asked.status()
    assert slept == []


def test_a_server_that_has_stopped_is_not_waited_for() -> None:
    slept: list[float] = []
    with (
        client(refusing(503, detail="disk full"), slept) as asked,
        pytest.raises(ProblemError, match="disk full"),
    ):
        asked.status()
    assert slept == []


def test_a_refusal_is_one_line_with_the_places() -> None:
    errors = [{"loc": ["sql"], "msg": "line 1: no\nfield"}, {"loc": [], "msg": "and so on"}]
    answer = refusing(422, title="Unprocessable", detail="no query", errors=errors)
    with client(answer) as asked, pytest.raises(ProblemError) as raised:
        asked.add_metrics("a/b", "SELECT")
    assert (
        str(raised.value)
        == "http://h:1/v1/streams/a%2Fb/metrics: no query; sql: line 1: no\nfield; and so on"
    )
    assert raised.value.errors[0] == (("sql",), "line 1: no\nfield")


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b"{}", b""])
def test_a_refusal_that_is_no_problem_object(body: bytes) -> None:
    with (
        client(lambda _: httpx.Response(404, content=body)) as asked,
        pytest.raises(ProblemError, match="404"),
    ):
        asked.status()


def test_an_answer_that_is_no_json() -> None:
    with (
        client(lambda _: httpx.Response(200, content=b"<html>")) as asked,
        pytest.raises(ClientError, match="is this a Railgun server"),
    ):
        asked.status()


def test_an_address_is_shown_as_people_write_it() -> None:
    refused = {"detail": "there is no node 'x'"}
    with client(lambda _: httpx.Response(422, json=refused)) as asked:
        with pytest.raises(ProblemError, match=r"/v1/cluster/plan\?what_if=remove=node 2: there is no node"):
            asked.what_if("remove=node 2")
        with pytest.raises(ProblemError, match="/v1/streams/größe/metrics: "):
            asked.metrics("größe")


@pytest.mark.parametrize(
    ("failure", "kind", "message"),
    [
        (
            httpx.ConnectError("[Errno 111] Connection refused"),
            UnreachableError,
            "refused; is a server running there?",
        ),
        (
            httpx.ConnectTimeout("t"),
            UnreachableError,
            "is a server running there?",
        ),
        (httpx.ReadTimeout("t"), ConnectionLostError, "no answer within 120 s"),
        (httpx.ReadError("reset"), ConnectionLostError, "the connection was lost: reset"),
        (httpx.RemoteProtocolError(""), ConnectionLostError, "the connection was lost: RemoteProtocolError"),
    ],
)
def test_failures_of_the_connection(failure: Exception, kind: type[ClientError], message: str) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise failure

    with client(answer) as asked, pytest.raises(kind) as raised:
        asked.score_lines("s", b"{}\n")
    assert message in str(raised.value)


def test_requests_are_as_the_interface_says() -> None:
    seen: list[tuple[str, str, str, bytes]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        kind = request.headers.get("Content-Type", "")
        seen.append((request.method, request.url.path, kind, request.content))
        return httpx.Response(200, json=[] if request.url.path.endswith("s") else {})

    with client(answer) as asked:
        asked.create_stream({"name": "s"})
        asked.evolve_stream("s", {"lateness": "1s"})
        asked.add_metrics("s", "SELECT 1")
        assert asked.metrics("s") == asked.streams() == []
        asked.score_lines("s", b"{}\n")
    assert [(method, path, kind) for method, path, kind, _ in seen] == [
        ("POST", "/v1/streams", "application/json"),
        ("PATCH", "/v1/streams/s", "application/json"),
        ("POST", "/v1/streams/s/metrics", "application/json"),
        ("GET", "/v1/streams/s/metrics", ""),
        ("GET", "/v1/streams", ""),
        ("POST", "/v1/streams/s/events", "application/x-ndjson"),
    ]
    assert json.loads(seen[2][3]) == {"sql": "SELECT 1"}
