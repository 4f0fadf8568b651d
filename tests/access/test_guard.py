"""The decision about a request: pure, from its head, by the hash of what was sent."""

from typing import Any

import pytest

from railgun.access.guard import ANONYMOUS, UNAUTHENTICATED, AccessError, Caller, Guard
from railgun.access.routes import Route, Routes
from railgun.access.scopes import OPEN, PROBE, TOKEN, needs
from railgun.access.tokens import Token, hash_of, new_token

ROUTES = Routes(
    (
        Route("GET", "/open", "a", "x", OPEN),
        Route("POST", "/open", "b", "x", OPEN),
        Route("GET", "/probe", "c", "x", PROBE),
        Route("GET", "/any", "d", "x", TOKEN),
        Route("POST", "/s/{stream}", "e", "x", needs("score:{stream}")),
        Route("DELETE", "/s/{stream}", "f", "x", needs("define:{stream}", "operate")),
        Route("POST", "/s", "g", "x", needs("define:{body}")),
        Route("GET", "/all", "h", "x", needs("metrics")),
    )
)
SECRET, OTHER = new_token(), new_token()
NOW_S = 1_000_000.0
HOST = (b"host", b"localhost:8080")


def token(*scopes: str, secret: str = SECRET, **more: Any) -> Token:
    return Token("t", (hash_of(secret.encode()),), scopes, **more)


def guard(*tokens: Token, hosts: tuple[str, ...] = (), now_s: float = NOW_S) -> Guard:
    return Guard(tokens, hosts, now_s=lambda: now_s)


def decided(made: Guard, method: str, path: str, *headers: tuple[bytes, bytes]) -> Caller | int:
    """Who asks, or the status of the refusal."""
    try:
        return made.authorize(method, ROUTES.find(method, path), headers)
    except AccessError as error:
        refusal = error
    assert (refusal.status == 401) == (dict(refusal.headers) == {b"www-authenticate": b"Bearer"})
    assert SECRET not in refusal.detail
    return refusal.status


def sent(secret: str = SECRET, scheme: str = "Bearer") -> tuple[bytes, bytes]:
    return b"authorization", f"{scheme} {secret}".encode()


@pytest.mark.parametrize(
    ("scopes", "may"),
    [
        (["score:a"], ["/any", "POST /s/a"]),
        (["score:*"], ["/any", "POST /s/a", "POST /s/b", "POST /s/*"]),
        (["define:a"], ["/any", "POST /s"]),
        (["define:*"], ["/any", "POST /s"]),
        (["define:a", "operate"], ["/any", "/all", "POST /s", "DELETE /s/a"]),
        (["operate"], ["/any", "/all"]),
        (["metrics"], ["/any", "/all"]),
        (["read:*", "inspect:*"], ["/any"]),
        (
            ["*"],
            ["/any", "/all", "POST /s", "POST /s/a", "POST /s/b", "POST /s/*", "DELETE /s/a", "DELETE /s/b"],
        ),
    ],
)
def test_scopes(scopes: list[str], may: list[str]) -> None:
    made = guard(token(*scopes))
    asked = ["/any", "/all", "POST /s", "POST /s/a", "POST /s/b", "POST /s/*", "DELETE /s/a", "DELETE /s/b"]
    for each in asked:
        method, _, path = each.rpartition(" ")
        found = decided(made, method or "GET", path, HOST, sent())
        assert found == 403 if each not in may else isinstance(found, Caller), each


def test_a_scope_includes_another() -> None:
    (define,) = (decided(guard(token("define:a")), "GET", "/any", sent()),)
    assert isinstance(define, Caller)
    assert define.scopes.may_read("a")
    assert not define.scopes.may_read("b")
    assert not define.scopes.have("score:a")
    assert not define.scopes.have("inspect:a")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], 401),
        ([sent(OTHER)], 401),
        ([sent(), sent()], 401),
        ([sent(), sent(OTHER)], 401),
        ([sent(scheme="Basic")], 401),
        ([sent(scheme="Bearer ")], 200),
        ([sent(scheme="bearer")], 200),
        ([sent(SECRET + " ")], 200),
        ([sent(SECRET + "x")], 401),
        ([sent(SECRET.upper())], 401),
        ([(b"authorization", b"Bearer")], 401),
        ([(b"authorization", b"Bearer ")], 401),
        ([(b"authorization", b"")], 401),
        ([(b"authorization", b"Bearer " + b"x" * 1_000_000)], 401),
        ([(b"authorization", b"Bearer \xff\x00")], 401),
        ([(b"authorization", b"Bearer " + hash_of(SECRET.encode()))], 401),
    ],
)
def test_what_stands_in_the_header(headers: list[tuple[bytes, bytes]], status: int) -> None:
    made = guard(token("*"))
    found = decided(made, "GET", "/any", HOST, *headers)
    assert found == status if status != 200 else isinstance(found, Caller)
    # What is open stays so, for whoever sends whatever.
    whoever = decided(made, "GET", "/open", HOST, *headers)
    assert isinstance(whoever, Caller)
    assert (whoever is UNAUTHENTICATED) == (status != 200)


def test_the_end_of_a_token() -> None:
    for ends_s, is_good in ((NOW_S + 1, True), (NOW_S, False), (NOW_S - 1, False), (None, True)):
        found = decided(guard(token("*", expires_s=ends_s)), "GET", "/any", sent())
        assert isinstance(found, Caller) if is_good else found == 401


def test_what_is_no_route() -> None:
    made = guard(token("metrics"))
    for method, path in (("GET", "/none"), ("PUT", "/any"), ("POST", "/probe")):
        assert decided(made, method, path) == 401
        assert isinstance(decided(made, method, path, sent()), Caller)


def test_a_head_is_decided_about_as_a_get() -> None:
    made = guard(token("score:a"))
    assert isinstance(decided(made, "HEAD", "/any", sent()), Caller)
    assert decided(made, "HEAD", "/all", sent()) == 403
    assert decided(made, "HEAD", "/any") == 401


class Untouchable(bytes):
    """Bytes that may be hashed by SHA-256 and not compared."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared as text")

    def __hash__(self) -> int:
        raise AssertionError("looked up as text")

    def __getitem__(self, key: Any) -> Any:
        return Untouchable(bytes(self)[key])

    def strip(self, characters: Any = None) -> "Untouchable":
        return Untouchable(bytes(self).strip(characters))

    def decode(self, *_: Any) -> str:
        raise AssertionError("decoded to be compared")


def check_nothing_compares_text(made: Guard) -> None:
    for secret in (SECRET, OTHER):
        decided(made, "GET", "/any", HOST, (b"authorization", Untouchable(b"Bearer " + secret.encode())))


def test_nothing_compares_the_text_of_a_token() -> None:
    check_nothing_compares_text(guard(token("*")))


@pytest.mark.parametrize("how", ["compared", "looked up"])
def test_a_token_that_is_compared_as_text_is_noticed(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A canary."""

    def hashed(given: bytes) -> bytes:
        is_known = given == SECRET.encode() if how == "compared" else given in {SECRET.encode()}
        return hash_of(SECRET.encode()) if is_known else b""

    monkeypatch.setattr("railgun.access.guard.hash_of", hashed)
    with pytest.raises(AssertionError, match=how):
        check_nothing_compares_text(guard(token("*")))


def test_going_on() -> None:
    """A request that runs for long is decided about again: by the tokens of then."""
    now_s = [NOW_S]
    made = Guard([token("score:a", expires_s=NOW_S + 10)], now_s=lambda: now_s[0])
    found = ROUTES.find("POST", "/s/a")
    caller = made.authorize("POST", found, [sent()])
    made.reauthorize(caller, found)
    now_s[0] += 10
    with pytest.raises(AccessError, match="expired"):
        made.reauthorize(caller, found)
    for changed, status in (
        ([token("score:a")], 0),
        ([token("read:a")], 403),
        ([token("*", secret=OTHER)], 401),
        ([], 401),
    ):
        made.replace(changed)
        if status == 0:
            assert made.reauthorize(caller, found).expires_s is None
            continue
        with pytest.raises(AccessError) as raised:
            made.reauthorize(caller, found)
        assert raised.value.status == status
    # Whoever came before there were tokens may not go on beside them.
    anybody = made.authorize("POST", found, [HOST])
    assert anybody is ANONYMOUS
    made.reauthorize(anybody, found)
    made.replace([token("*")])
    with pytest.raises(AccessError):
        made.reauthorize(anybody, found)


@pytest.mark.parametrize("has_token", [True, False])
def test_going_on_by_a_certificate(has_token: bool) -> None:
    """Whether there are tokens or not; from the moment that one is needed, and as long as it is good."""
    tokens = [token("*")] if has_token else []
    made = Guard(tokens)
    found = ROUTES.find("POST", "/s/a")
    caller = made.authorize("POST", found, [sent()] if has_token else [HOST])
    assert made.reauthorize(caller, found).name == caller.name
    made.replace(tokens, needs_certificate=True)
    assert made.reauthorize(caller, found, has_certificate=True).name == caller.name
    with pytest.raises(AccessError, match="a client's certificate is needed") as raised:
        made.reauthorize(caller, found)
    assert raised.value.status == 403


def test_warnings() -> None:
    day_s = 86_400
    ends = {"over": -day_s, "soon": 13.5 * day_s, "later": 15 * day_s, "never": None}
    made = guard(
        *(
            Token(name, (name.encode(),), ("*",), None if end is None else NOW_S + end)
            for name, end in ends.items()
        )
    )
    assert [each.partition(";")[0] for each in made.warnings()] == [
        "the token over has expired",
        "the token soon expires in 13.5 days",
    ]


# --- browsers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "is_answered"),
    [
        (b"localhost", True),
        (b"localhost:8080", True),
        (b"LOCALHOST:8080", True),
        (b"localhost.", True),
        (b"127.0.0.1:8080", True),
        (b"10.1.2.3", True),
        (b"[::1]:8080", True),
        (b"[fe80::1]", True),
        (b"railgun.example.com", True),
        (b"Railgun.Example.com:443", True),
        (b"evil.example.com", False),
        (b"localhost.evil.example.com", False),
        (b"127.0.0.1.evil.example.com", False),
        (b"sub.railgun.example.com", False),
        (b"", False),
        (b":8080", False),
        (b"\xff", False),
        (b"127.1", False),
    ],
)
def test_hosts_where_no_token_guards(host: bytes, is_answered: bool) -> None:
    made = guard(hosts=("railgun.example.com",))
    for _ in range(2):
        found = decided(made, "GET", "/any", (b"host", host))
        assert found is ANONYMOUS if is_answered else found == 421
    assert decided(made, "GET", "/probe", (b"host", host)) is ANONYMOUS
    assert decided(made, "GET", "/none", (b"host", host)) == (421 if not is_answered else ANONYMOUS)
    # With tokens a proxy may use any name.
    assert isinstance(decided(guard(token("*")), "GET", "/any", (b"host", host), sent()), Caller)


def test_hosts_that_are_missing_or_many() -> None:
    assert decided(guard(), "GET", "/any") == 421
    assert decided(guard(), "GET", "/any", HOST, HOST) == 421
    for made, path in ((guard(), "/any"), (guard(), "/probe"), (guard(token("*")), "/any")):
        assert decided(made, "GET", path, HOST, HOST, sent()) == 421
    assert decided(guard(), "GET", "/probe") is ANONYMOUS


def test_the_refusal_of_a_host_names_the_setting() -> None:
    with pytest.raises(AccessError, match=r"http\.hosts"):
        guard().authorize("GET", ROUTES.find("GET", "/any"), [(b"host", b"evil.example.com")])


@pytest.mark.parametrize(
    ("origin", "site", "status"),
    [
        (None, None, 200),
        (None, b"same-origin", 200),
        (None, b"none", 200),
        (None, b"same-site", 403),
        (None, b"cross-site", 403),
        (None, b"whatever", 403),
        (b"http://localhost:8080", None, 200),
        (b"https://localhost:8080", b"same-origin", 200),
        (b"http://LOCALHOST:8080", None, 200),
        (b"http://localhost:8080", b"cross-site", 403),
        (b"http://localhost:3000", None, 403),
        (b"http://evil.example.com", None, 403),
        (b"http://railgun.example.com", None, 200),
        (b"https://railgun.example.com:8443", None, 200),
        (b"null", None, 403),
        (b"", None, 403),
        (b"file://", None, 403),
        (b"ftp://localhost:8080", None, 403),
    ],
)
def test_pages_of_other_sites(origin: bytes | None, site: bytes | None, status: int) -> None:
    headers = [
        (name, value) for name, value in ((b"origin", origin), (b"sec-fetch-site", site)) if value is not None
    ]
    for tokens in ((), (token("*"),)):
        made = guard(*tokens, hosts=("railgun.example.com",))
        found = decided(made, "POST", "/s/a", HOST, sent(), *headers)
        assert found == status if status != 200 else isinstance(found, Caller)
        # What changes nothing is answered: browsers show it to no page of another site.
        for method in ("GET", "HEAD"):
            assert isinstance(decided(made, method, "/any", HOST, sent(), *headers), Caller)
