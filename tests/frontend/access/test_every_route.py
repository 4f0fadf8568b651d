"""Every route with every kind of token, and every form of an event: who may not is refused from the head alone.

A route without a row in `ALLOWED` fails the first test.
"""

import contextlib
import json
import ssl
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from frontend.http.routes import ROUTES
from railgun.access.guard import Guard
from railgun.access.routes import Route
from railgun.config.settings import TlsSettings
from tests.certificates import DAY, Authority
from tests.frontend.access.callers import FOREIGN, NOBODY, OWN, UNKNOWN, bearer, guarded, looked_up
from tests.frontend.raw_client import RawClient, Response
from tests.frontend.serving import Server, until

READ = {"read-own", "read-all", "define-own", "define-all", "remove-own", "reads-own-scores-all"}
DEFINE = {"define-own", "define-all", "remove-own"}
METRICS = {"metrics", "operate", "remove-own"}
OPERATE = {"operate", "remove-own"}
EVERY_TOKEN = None
OPEN = "open"
# By handler, which tokens may, beside those that may do everything. Written down a second time, by hand.
ALLOWED: dict[str, Any] = {
    "create_stream": DEFINE,
    "list_streams": EVERY_TOKEN,
    "show_stream": READ,
    "evolve_stream": DEFINE,
    "drop_stream": {"remove-own"},
    "add_metrics": DEFINE,
    "list_metrics": READ,
    "show_metric": READ,
    "drop_metric": DEFINE,
    "explain": READ,
    "show_plan": READ,
    "show_answered": {"inspect-own", "inspect-all"},
    "key_values": {"inspect-own", "inspect-all"},
    "values_of_keys": {"inspect-own", "inspect-all"},
    "dead_letters": {"inspect-own", "inspect-all"},
    "last_events": {"inspect-own", "inspect-all"},
    "status": METRICS,
    "whoami": EVERY_TOKEN,
    "change_log": OPERATE,
    "bundle": OPERATE,
    "begin_deepening": DEFINE,
    "show_deepening": READ,
    "give_up_deepening": DEFINE,
    "install_deepening": DEFINE,
    "show_cluster": METRICS,
    "what_if": METRICS,
    "drain": OPERATE,
    "undrain": OPERATE,
    "accept_cut": OPERATE,
    "accept_gap": OPERATE,
    "show_console": OPEN,
    "console_file": OPEN,
    "openapi": OPEN,
    "docs": OPEN,
    "docs_style": OPEN,
    "score": {"score-own", "score-all", "reads-own-scores-all"},
    "alive": OPEN,
    "ready": OPEN,
    "metrics": METRICS,
    "live": EVERY_TOKEN,
}
TOKENS = (
    "read-own",
    "read-all",
    "inspect-own",
    "inspect-all",
    "score-own",
    "score-all",
    "define-own",
    "define-all",
)
TOKENS += ("metrics", "operate", "remove-own", "reads-own-scores-all")
OF_ALL_STREAMS = {"read-all", "inspect-all", "score-all", "define-all", "reads-own-scores-all"}
EVENTS = f"/v1/streams/{OWN}/events"
EVENT = b'{"tx_id": "a", "ts": 1700000000000, "card": "c", "amount": 1}'
JSON, NDJSON = "application/json", "application/x-ndjson"
LARGE_BYTES = 48 << 20
FORMS = [
    (EVENT, JSON),
    (b"[" + EVENT + b"]", JSON),
    (EVENT + b"\n", NDJSON),
    (EVENT + b" " * (1 << 20), JSON),
]


def path_of(row: Route, stream: str = OWN) -> str:
    return row.path.format(stream=stream, name="none", node="node-1", file="shell.js")


def head_of(method: str, path: str, given: Sequence[str], *more: str) -> bytes:
    lines = (
        f"{method} {path} HTTP/1.1",
        "Host: localhost",
        *(f"Authorization: {each}" for each in given),
        *more,
    )
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"


def asked(
    running: Server,
    method: str,
    path: str,
    given: Sequence[str],
    *more: str,
    body: bytes = b"",
    context: ssl.SSLContext | None = None,
) -> Response:
    """The answer to a request on a connection of its own. body: sent with the head; its length is in `more`.

    context: for TLS.
    """
    with RawClient(running.address, context) as client:
        client.send(head_of(method, path, given, *more) + body)
        if method == "HEAD":
            status, headers = client.head()
            return Response(status, headers, b"")
        return client.response()


def length(body: bytes, kind: str = JSON) -> tuple[str, str]:
    return f"Content-Type: {kind}", f"Content-Length: {len(body)}"


def refused(running: Server, response: Response, status: int) -> str:
    """What a refusal says, which was made without a look-up, names no stream of others and no token."""
    assert response.status == status, response
    assert looked_up(running) == []
    assert FOREIGN.encode() not in response.body
    assert b"railgun_" not in response.body
    if status == 401:
        assert response.headers["www-authenticate"] == "Bearer"
    if not response.body:
        return ""
    assert response.headers["content-type"] == "application/problem+json"
    problem = json.loads(response.body)
    assert problem["status"] == status
    return str(problem["detail"])


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with (
        pytest.MonkeyPatch.context() as patch,
        guarded(tmp_path_factory.mktemp("guarded") / "data", patch) as made,
    ):
        looked_up(made)
        yield made


def rows() -> Iterator[tuple[str, Route]]:
    """Each row with its method; a GET's with HEAD too."""
    for row in ROUTES:
        yield row.method, row
        if row.method == "GET":
            yield "HEAD", row


def test_every_route_is_in_the_table() -> None:
    assert sorted(row.handler for row in ROUTES) == sorted(ALLOWED)
    assert {row.handler for row in ROUTES if row.needs.is_open} == {
        handler for handler, who in ALLOWED.items() if who is OPEN
    }


def check_nobody(running: Server) -> int:
    """Whoever has no token that is good is let in nowhere but to what is open. How many were refused."""
    count = 0
    for method, row in rows():
        for kind in NOBODY:
            # A body is announced, and never sent.
            promised = () if method in ("GET", "HEAD") else (f"Content-Type: {JSON}", "Content-Length: 100")
            response = asked(running, method, path_of(row), kind.given, *promised)
            if ALLOWED[row.handler] is OPEN:
                assert response.status == 200, (row, kind)
                looked_up(running)
            else:
                refused(running, response, 401)
                count += 1
    return count


def test_nobody(running: Server) -> None:
    assert check_nobody(running) > 250


def test_other_scopes(running: Server) -> None:
    """Each route, with each token that may not: 403 from the head. With each that may, something else."""
    for method, row in rows():
        who = ALLOWED[row.handler]
        if who is OPEN or who is EVERY_TOKEN or row.handler in ("drop_stream",):
            continue
        for name in TOKENS:
            promised = () if method in ("GET", "HEAD") else (f"Content-Type: {JSON}", "Content-Length: 2")
            body = b"[]" if promised else b""
            if name in who:
                response = asked(running, method, path_of(row), [bearer(name)], *promised, body=body)
                assert response.status not in (401, 403), (row, name, response)
                looked_up(running)
            else:
                response = asked(running, method, path_of(row), [bearer(name)], *promised)
                said = refused(running, response, 403)
                assert method == "HEAD" or "lacks the scope" in said


def test_other_streams(running: Server) -> None:
    """A token of one stream gets the same answer for a stream of others and for one that there is not."""
    for method, row in rows():
        if "{stream}" not in row.path:
            continue
        promised = () if method in ("GET", "HEAD") else (f"Content-Type: {JSON}", "Content-Length: 100")
        for name in sorted(ALLOWED[row.handler] - OF_ALL_STREAMS):
            said = []
            for stream in (FOREIGN, UNKNOWN):
                response = asked(running, method, path_of(row, stream), [bearer(name)], *promised)
                assert response.status == 403
                assert looked_up(running) == []
                said.append(response.body.replace(stream.encode(), b"STREAM"))
            assert said[0] == said[1]


def test_dropping_a_stream_takes_both_scopes(running: Server) -> None:
    for name in TOKENS:
        if name != "remove-own":
            refused(running, asked(running, "DELETE", f"/v1/streams/{OWN}", [bearer(name)]), 403)
    response = asked(running, "DELETE", f"/v1/streams/{OWN}?not=now", [bearer("remove-own")])
    assert response.status == 422
    looked_up(running)


@pytest.mark.parametrize(
    "promised",
    [
        length(EVENT),
        length(b"[" + EVENT + b"]"),
        length(EVENT, NDJSON),
        (f"Content-Type: {NDJSON}", "Transfer-Encoding: chunked"),
        (f"Content-Type: {JSON}", f"Content-Length: {LARGE_BYTES}"),
        (f"Content-Type: {JSON}", f"Content-Length: {LARGE_BYTES}", "Expect: 100-continue"),
        (f"Content-Type: {NDJSON}", f"Content-Length: {LARGE_BYTES}"),
        ("Content-Type: text/plain", "Content-Length: 10"),
    ],
)
@pytest.mark.parametrize("query", ["", "?metrics=none_such", "?reply=none", "?wrong=1"])
def test_every_form_of_an_event_is_refused_before_its_body(
    running: Server, promised: tuple[str, ...], query: str
) -> None:
    for kind in NOBODY:
        refused(running, asked(running, "POST", EVENTS + query, kind.given, *promised), 401)
    for name in ("read-own", "define-own", "inspect-own", "metrics", "operate"):
        refused(running, asked(running, "POST", EVENTS + query, [bearer(name)], *promised), 403)
    assert running.service.application.in_flight.size_bytes == 0


def check_events(running: Server) -> None:
    """On one connection, whoever may and whoever may not in turn: each request is decided by itself."""
    with RawClient(running.address) as client:
        for body, kind in FORMS:
            for who, status in (
                (["score-own"], 200),
                ([], 401),
                (["score-all"], 200),
                (["read-own"], 403),
                (["expired"], 401),
                (["score-own", "score-own"], 401),
                (["all"], 200),
            ):
                client.send(
                    head_of("POST", EVENTS, [bearer(each) for each in who], *length(body, kind)) + body
                )
                response = client.response()
                assert response.status == status, (who, kind)
                if status == 200:
                    assert b'"n7"' in response.body
                    looked_up(running)
                else:
                    refused(running, response, status)


def test_events_on_a_kept_connection(running: Server) -> None:
    check_events(running)


def test_single_events_with_a_token_go_the_short_way(
    running: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []
    score = running.service.application.single_events.score
    monkeypatch.setattr(
        running.service.application.single_events,
        "score",
        lambda *given: taken.append(score(*given)) or taken[-1],
    )
    for name, status in (("score-own", 200), ("read-own", 403), ("all", 200)):
        response = asked(running, "POST", EVENTS, [bearer(name)], *length(EVENT), body=EVENT)
        assert response.status == status
    assert taken == [True, True]


def test_a_single_event_path_that_is_not_checked_is_noticed(
    running: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A canary."""
    monkeypatch.setattr(running.service.application.single_events, "_guard", Guard())
    with pytest.raises(AssertionError, match=r"\(\[\], 'application/json'\)"):
        check_events(running)
    looked_up(running)


def test_what_is_no_route(running: Server) -> None:
    for method, path in (("GET", "/v1/nothing"), ("PUT", "/v1/streams"), ("POST", "/healthz"), ("GET", "//")):
        for kind in NOBODY:
            refused(running, asked(running, method, path, kind.given, "Content-Length: 0"), 401)
        response = asked(running, method, path, [bearer("metrics")], "Content-Length: 0")
        refused(running, response, 405 if method in ("PUT", "POST") else 404)


def check_listing(running: Server) -> None:
    """Lists name only what a token may read."""
    for name, streams in (("read-own", [OWN]), ("define-own", [OWN]), ("score-own", []), ("metrics", [])):
        response = asked(running, "GET", "/v1/streams", [bearer(name)])
        assert [each["name"] for each in json.loads(response.body)["streams"]] == streams, "a list"
    both = asked(running, "GET", "/v1/streams", [bearer("read-all")])
    assert sorted(each["name"] for each in json.loads(both.body)["streams"]) == [FOREIGN, OWN]
    looked_up(running)


def test_listings(running: Server) -> None:
    check_listing(running)


def test_a_listing_that_shows_a_foreign_stream_is_noticed(
    running: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A canary."""
    monkeypatch.setattr("railgun.access.scopes.Scopes.may_read", lambda self, stream: True)
    with pytest.raises(AssertionError, match="a list"):
        check_listing(running)


def check_hints(running: Server) -> None:
    """A name that there is not gets a hint of names that the token may read, by every way to a stream."""
    near_foreign = FOREIGN[:-1]
    for body, kind in ((EVENT, JSON), (b"[" + EVENT + b"]", JSON), (EVENT + b"\n", NDJSON)):
        for name, hint in (("reads-own-scores-all", OWN), ("score-all", "")):
            path = f"/v1/streams/{near_foreign}/events"
            response = asked(running, "POST", path, [bearer(name)], *length(body, kind), body=body)
            assert response.status == 404
            assert FOREIGN.encode() not in response.body, "a hint"
            assert json.loads(response.body)["detail"].endswith(hint or repr(near_foreign))
        response = asked(running, "POST", path, [bearer("all")], *length(body, kind), body=body)
        assert f"did you mean {FOREIGN}?" in json.loads(response.body)["detail"]
    sql = json.dumps({"sql": f"SELECT count(*) AS n FROM {FOREIGN} OVER INFINITE"}).encode()
    for path in (f"/v1/streams/{OWN}/explain", f"/v1/streams/{OWN}/metrics"):
        said = []
        for stream in (FOREIGN, UNKNOWN):
            text = sql.replace(FOREIGN.encode(), stream.encode())
            response = asked(running, "POST", path, [bearer("define-own")], *length(text), body=text)
            assert response.status == 422
            said.append(response.body.replace(stream.encode(), b"STREAM"))
        assert said[0] == said[1]
    looked_up(running)


def test_hints(running: Server) -> None:
    check_hints(running)


def test_a_hint_with_the_name_of_a_stream_is_noticed(
    running: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A canary."""
    monkeypatch.setattr("railgun.access.scopes.Scopes.may_read", lambda self, stream: True)
    with pytest.raises(AssertionError, match="a hint"):
        check_hints(running)


def test_a_new_stream_needs_the_scope_of_its_name(running: Server) -> None:
    looked_up(running)
    body = json.dumps({"name": FOREIGN, "fields": {"other": "long"}}).encode()
    response = asked(running, "POST", "/v1/streams", [bearer("define-own")], *length(body), body=body)
    assert response.status == 403
    assert looked_up(running) == []
    unknown = body.replace(FOREIGN.encode(), UNKNOWN.encode())
    other = asked(running, "POST", "/v1/streams", [bearer("define-own")], *length(unknown), body=unknown)
    assert other.body == response.body.replace(FOREIGN.encode(), UNKNOWN.encode())
    refused(running, asked(running, "POST", "/v1/streams", [bearer("read-all")], *length(body)), 403)
    assert (
        asked(running, "POST", "/v1/streams", [bearer("define-all")], *length(body), body=body).status == 409
    )


def check_rotation(running: Server) -> None:
    """Both hashes of a token are good, until others are in their place; that holds on a kept connection too."""
    guard = running.service.application.guard
    before = guard.tokens
    changed = [each for each in before if each.name != "rotated"]
    with RawClient(running.address) as client:
        for name, status in (("rotated-2", 200), ("rotated-3", 200), ("rotated-1", 401)):
            client.send(head_of("POST", EVENTS, [bearer(name)], *length(EVENT)) + EVENT)
            assert client.response().status == status
        try:
            guard.replace(changed)
            for name in ("rotated-2", "rotated-3"):
                for path, body in ((EVENTS, EVENT), (f"/v1/streams/{OWN}/explain", b"{}")):
                    client.send(head_of("POST", path, [bearer(name)], *length(body)) + body)
                    assert client.response().status == 401, "after a reload"
        finally:
            guard.replace(before)
            looked_up(running)


def test_rotation(running: Server) -> None:
    check_rotation(running)


def test_a_cache_that_outlives_a_reload_is_noticed(running: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A canary."""
    authorize, known = Guard.authorize, {}

    def cached(self: Guard, method: str, found: Any, headers: Any, **more: Any) -> Any:
        key = method, str(found), str(headers)
        if key not in known:
            known[key] = authorize(self, method, found, headers, **more)
        return known[key]

    monkeypatch.setattr(Guard, "authorize", cached)
    with pytest.raises(AssertionError, match="after a reload"):
        check_rotation(running)


def test_whoami(running: Server) -> None:
    response = asked(running, "GET", "/v1/whoami", [bearer("read-own")])
    assert json.loads(response.body) == {
        "name": "read-own",
        "scopes": [f"read:{OWN}"],
        "expires": None,
        "limit_per_s": None,
        "topic_prefix": None,
    }


def test_probes_say_more_to_who_has_a_token(
    tmp_path: Path, running: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = {"partitioner": "k", "partition": 0}
    tasks = [{"stream": OWN, **task}, {"stream": FOREIGN, **task}]
    monkeypatch.setattr(running.backend, "unanswered", lambda: tasks)
    for given, shown in (
        ([], None),
        ([bearer("wrong")], None),
        ([bearer("score-own")], None),
        ([bearer("read-own")], tasks[:1]),
        ([bearer("metrics")], tasks),
        ([bearer("all")], tasks),
    ):
        assert json.loads(asked(running, "GET", "/readyz", given).body).get("unanswered") == shown


# --- certificates of clients -----------------------------------------------------------------------

BAD_CERTIFICATES = ("wrong CA", "expired", "not yet valid", "revoked", "of a server's CA", "by itself")


class Secured:
    """A server with tokens, CAs of clients, and contexts of clients by what they show."""

    def __init__(self, running: Server, contexts: dict[str, ssl.SSLContext]) -> None:
        self.running, self.contexts = running, contexts

    @property
    def untrusted(self) -> int:
        assert self.running.service.tls is not None
        return self.running.service.tls.handshakes["untrusted"]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    servers, clients, others = (Authority(folder, name) for name in ("servers", "clients", "others"))
    server, revoked = servers.pair(), clients.pair()
    shown = {
        "good": clients.pair(),
        "wrong CA": others.pair(),
        "expired": clients.pair(since=-3 * DAY, until=-DAY),
        "not yet valid": clients.pair(since=DAY),
        "revoked": revoked,
        "of a server's CA": servers.pair(),
        "by itself": others.alone(),
    }
    crl = folder / "crl.pem"
    crl.write_bytes(clients.revoking(revoked))
    tls = TlsSettings(str(server.certificate), str(server.key), str(clients.file), str(crl))
    contexts = {name: servers.client_context(pair) for name, pair in shown.items()}
    contexts["none"] = servers.client_context()
    with (
        pytest.MonkeyPatch.context() as patch,
        guarded(folder / "data", patch, context=contexts["good"], tls=tls) as made,
    ):
        looked_up(made)
        yield Secured(made, contexts)


def check_without_a_certificate(secured: Secured) -> None:
    """Nothing but what is open, whatever the token, and of that no more than nobody is told."""
    running, none = secured.running, secured.contexts["none"]
    for method, row in rows():
        promised = () if method in ("GET", "HEAD") else (f"Content-Type: {JSON}", "Content-Length: 100")
        for given in ((), (bearer("all"),), (bearer("wrong"),)):
            response = asked(running, method, path_of(row), given, *promised, context=none)
            if ALLOWED[row.handler] is OPEN:
                assert response.status == 200, row
                looked_up(running)
            else:
                said = refused(running, response, 403)
                assert method == "HEAD" or "certificate" in said, "no certificate"
    for method, path in (("GET", "/v1/nothing"), ("PUT", "/v1/streams"), ("GET", "//")):
        refused(running, asked(running, method, path, [bearer("all")], context=none), 403)


def test_no_certificate(secured: Secured) -> None:
    check_without_a_certificate(secured)


def check_events_without_a_certificate(secured: Secured) -> None:
    """Events in every form on kept connections: with a certificate they are answered, without one none is."""
    running = secured.running
    for name in ("good", "none"):
        with RawClient(running.address, secured.contexts[name]) as client:
            for body, kind in FORMS * 2:
                request = head_of("POST", EVENTS, [bearer("score-own")], *length(body, kind)) + body
                client.send(request)
                response = client.response()
                if name == "good":
                    assert response.status == 200
                    assert b'"n7"' in response.body
                    looked_up(running)
                else:
                    refused(running, response, 403)


def test_events_without_a_certificate(secured: Secured) -> None:
    check_events_without_a_certificate(secured)


@pytest.mark.parametrize("name", ["score", "admit"])
def test_events_that_are_not_asked_for_a_certificate_are_noticed(
    secured: Secured, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A canary: on the short way, and in the application."""
    guard = secured.running.service.application.guard
    unasking = Guard(guard.tokens)
    part = secured.running.service.application
    monkeypatch.setattr(*((part, "guard") if name == "score" else (part.single_events, "_guard")), unasking)
    with pytest.raises(AssertionError):
        check_events_without_a_certificate(secured)
    looked_up(secured.running)


def test_a_certificate_does_not_replace_a_token(secured: Secured) -> None:
    running, good = secured.running, secured.contexts["good"]
    for kind in NOBODY:
        for body, form in FORMS:
            refused(
                running, asked(running, "POST", EVENTS, kind.given, *length(body, form), context=good), 401
            )
    for name in ("read-own", "metrics"):
        refused(running, asked(running, "POST", EVENTS, [bearer(name)], *length(EVENT), context=good), 403)


@pytest.mark.parametrize("name", BAD_CERTIFICATES)
def test_a_bad_certificate_ends_the_handshake(secured: Secured, name: str) -> None:
    """Every row, and every form of an event; what is open too."""
    running = secured.running
    requests = [head_of(method, path_of(row), [bearer("all")]) for method, row in rows()]
    for body, kind in FORMS:
        requests.append(head_of("POST", EVENTS, [bearer("all")], *length(body, kind)) + body)
    before = secured.untrusted
    for request in requests:
        received = b""
        with contextlib.suppress(OSError), RawClient(running.address, secured.contexts[name]) as client:
            client.send(request)
            received = client.socket.recv(1)
        assert received == b""
    until(lambda: secured.untrusted - before == len(requests))
    assert looked_up(running) == []
