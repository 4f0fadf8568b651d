"""The decision about a request, from its head: who asks, and whether they may."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from railgun.access.browsers import SAFE_METHODS, Hosts, is_cross_site
from railgun.access.rates import Rate
from railgun.access.routes import RouteMatch
from railgun.access.scopes import EVERYTHING, Scopes
from railgun.access.tokens import Token, hash_of

Header = tuple[bytes, bytes]

WARNS_BEFORE_S = 14 * 86_400.0
_BEARER = b"bearer "
_SEVERAL = b"\0several"
"""In place of a header that is there more than once; no value that is sent is this object."""
_CHALLENGE: Header = (b"www-authenticate", b"Bearer")
_NO_TOKEN = "a token is needed; send it as Authorization: Bearer TOKEN"
_WRONG = "the token is not known here; it may have been replaced"
_NO_CERTIFICATE = "a client's certificate is needed; connect with one of a CA that this server knows"


class AccessError(Exception):
    """A request that is refused. detail: why, for its sender.  headers: that go with the answer.

    who: the name of the token that was sent; None where it is not known.
    """

    def __init__(
        self, status: int, detail: str, headers: Sequence[Header] = (), who: str | None = None
    ) -> None:
        self.status, self.detail, self.headers, self.who = status, detail, tuple(headers), who
        super().__init__(detail)


@dataclass(frozen=True, slots=True, eq=False)
class Caller:
    """Who asks. name: of the token; None where there is none.  hash: by which the token was found.

    rate: how many events they may send; None: as many as they like.
    """

    name: str | None
    scopes: Scopes
    hash: bytes | None = None
    expires_s: float | None = None
    limit_per_s: int | None = None
    rate: Rate | None = None


UNAUTHENTICATED = Caller(None, Scopes())
"""Has no token; may use open routes."""
ANONYMOUS = Caller(None, Scopes((EVERYTHING,)))
"""Whoever asks where there are no tokens."""


class _State(NamedTuple):
    """What is in force. callers: by the hash of their token."""

    callers: Mapping[bytes, Caller]
    needs_certificate: bool


class _Head(NamedTuple):
    """What a decision reads of a request's headers: `_SEVERAL` in place of one that is there more than once."""

    authorization: bytes | None
    host: bytes | None
    origin: bytes | None
    site: bytes | None


class Guard:
    """Decides about every request of a port. burst_events: how many events a limited token may send at once.

    needs_certificate: whether clients have to show a certificate, beside their token, for all but open routes.
    """

    def __init__(
        self,
        tokens: Sequence[Token] = (),
        hosts: Iterable[str] = (),
        *,
        burst_events: int = 1,
        needs_certificate: bool = False,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._now_s, self._burst_events, self._hosts = now_s, burst_events, Hosts(hosts)
        self._state = _State({}, needs_certificate)
        self.tokens: tuple[Token, ...] = ()
        self.replace(tokens, needs_certificate=needs_certificate)

    def replace(self, tokens: Sequence[Token], *, needs_certificate: bool = False) -> None:
        """Decide by these from now on, about requests under way too. From any thread."""
        rates = {(each.name, each.limit_per_s): each.rate for each in self._state.callers.values()}
        callers: dict[bytes, Caller] = {}
        for token in tokens:
            rate = rates.get((token.name, token.limit_per_s))
            if token.limit_per_s is not None and rate is None:
                rate = Rate(token.limit_per_s, self._burst_events, self._now_s())
            for each in token.hashes:
                callers[each] = Caller(
                    token.name, Scopes(token.scopes), each, token.expires_s, token.limit_per_s, rate
                )
        # One assignment: each decision is by what was in force before, or by this.
        self._state = _State(callers, needs_certificate)
        self.tokens = tuple(tokens)

    def authorize(
        self, method: str, found: RouteMatch, headers: Iterable[Header], *, has_certificate: bool = False
    ) -> Caller:
        """Who asks, if they may. headers: with names in lower case.  found: without a row, whoever may ask for nothing
        is refused, and the others are to be told that there is none.  has_certificate: whether the client of the
        connection showed one, which was verified then.

        Raises AccessError (401, 403, 421). Reads nothing but its arguments, the tokens and the clock.
        """
        (callers, needs_certificate), head = self._state, _head(headers)
        need = None if found.route is None else found.route.needs
        is_any_host_good = bool(callers) or (need is not None and need.is_probe)
        _check_browser(self._hosts, method, head, is_any_host_good=is_any_host_good)
        if needs_certificate and not has_certificate:
            if need is not None and need.is_open:
                return UNAUTHENTICATED
            raise AccessError(403, _NO_CERTIFICATE)
        if not callers:
            return ANONYMOUS
        if need is not None and need.is_open:
            return self._known(callers, head) or UNAUTHENTICATED
        caller = self._caller(callers, head)
        missing = _missing(found, caller)
        if missing is not None:
            raise forbidden(missing, caller)
        return caller

    def reauthorize(self, caller: Caller, found: RouteMatch, *, has_certificate: bool = False) -> Caller:
        """The caller of a request under way, by the tokens of now. found: the request's row.

        has_certificate: whether the client of the connection showed one that is good now.
        Raises AccessError where they may not go on.
        """
        callers, needs_certificate = self._state
        if needs_certificate and not has_certificate:
            raise AccessError(403, _NO_CERTIFICATE, who=caller.name)
        if not callers and caller is ANONYMOUS:
            return caller
        current = None if caller.hash is None else callers.get(caller.hash)
        if current is None:
            raise _unauthorized(_WRONG)
        self._check_time(current)
        missing = _missing(found, current)
        if missing is not None:
            raise forbidden(missing, current)
        return current

    def wait_s(self, caller: Caller, events: int) -> float:
        """Count events of a caller: 0, or the seconds until they may be sent; they are not counted then."""
        return 0.0 if caller.rate is None else caller.rate.take(events, self._now_s())

    def give_back(self, caller: Caller, events: int) -> None:
        """Count events no more, which `wait_s` counted and which were not sent."""
        if caller.rate is not None:
            caller.rate.give_back(events)

    def queue_s(self, rate: Rate, events: int) -> float:
        """Have events wait for their turn: the seconds until then. `Rate.leave` follows."""
        return rate.queue(events, self._now_s())

    def _known(self, callers: Mapping[bytes, Caller], head: _Head) -> Caller | None:
        """Who asks for what is open: nobody need say."""
        try:
            return self._caller(callers, head)
        except AccessError:
            return None

    def _caller(self, callers: Mapping[bytes, Caller], head: _Head) -> Caller:
        given = head.authorization
        if given is None:
            raise _unauthorized(_NO_TOKEN)
        if given is _SEVERAL:
            raise _unauthorized("there are several Authorization headers; send one")
        if given[: len(_BEARER)].lower() != _BEARER:
            raise _unauthorized(f"the Authorization header is of another kind; {_NO_TOKEN}")
        found = callers.get(hash_of(given[len(_BEARER) :].strip()))
        if found is None:
            raise _unauthorized(_WRONG)
        self._check_time(found)
        return found

    def _check_time(self, caller: Caller) -> None:
        if caller.expires_s is not None and self._now_s() >= caller.expires_s:
            raise _unauthorized(f"the token {caller.name} has expired; a new one is needed", caller.name)

    def warnings(self) -> list[str]:
        """Tokens that have expired or soon will, for the log."""
        now_s, found = self._now_s(), []
        for token in self.tokens:
            if token.expires_s is None or token.expires_s - now_s > WARNS_BEFORE_S:
                continue
            left_s = token.expires_s - now_s
            when = "has expired" if left_s <= 0 else f"expires in {left_s / 86_400:.1f} days"
            found.append(f"the token {token.name} {when}; `railgun token new` makes another")
        return found


def _missing(found: RouteMatch, caller: Caller) -> str | None:
    """The first scope of a row that a caller lacks."""
    return None if found.route is None else found.route.needs.missing(caller.scopes, found.parameters)


def forbidden(scope: str, caller: Caller) -> AccessError:
    """The error for a caller who lacks a scope."""
    return AccessError(403, f"the token lacks the scope {scope[:100]}", who=caller.name)


def _unauthorized(detail: str, who: str | None = None) -> AccessError:
    return AccessError(401, detail, (_CHALLENGE,), who)


def _head(headers: Iterable[Header]) -> _Head:
    authorization = host = origin = site = None
    for name, value in headers:
        if name == b"host":
            host = value if host is None else _SEVERAL
        elif name == b"authorization":
            authorization = value if authorization is None else _SEVERAL
        elif name == b"origin":
            origin = value if origin is None else _SEVERAL
        elif name == b"sec-fetch-site":
            site = value if site is None else _SEVERAL
    return _Head(authorization, host, origin, site)


def _check_browser(hosts: Hosts, method: str, head: _Head, *, is_any_host_good: bool) -> None:
    """Raise AccessError (403, 421) for what the page of another site has a browser send, and for more than one Host."""
    host = head.host
    if host is _SEVERAL:
        raise AccessError(421, "there is more than one Host header; send one")
    if not is_any_host_good and (host is None or not hosts.are_trusted(host)):
        shown = (host or b"").decode("latin-1")[:80]
        raise AccessError(
            421,
            f"the Host {shown!r} is not localhost, an address, or in http.hosts; without tokens no other is answered, "
            "lest web pages reach this server under names of their own",
        )
    if method in SAFE_METHODS:
        return
    if head.site is not None and is_cross_site(head.site):
        raise AccessError(403, "a page of another site asks (Sec-Fetch-Site); it may change nothing here")
    if head.origin is not None and hosts.is_foreign(head.origin, host):
        raise AccessError(
            403,
            "a page of another site asks (Origin); it may change nothing here unless http.hosts names its host",
        )
