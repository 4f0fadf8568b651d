"""Decides about a request from its head: identifies the caller, and checks that the caller may make it.

The ports of servers and nodes each have one `Guard`. It does no I/O.
"""

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
"""Stands for a header that was sent more than once. It is compared by identity, so no sent value equals it."""
_CHALLENGE: Header = (b"www-authenticate", b"Bearer")
_NO_TOKEN = "a token is needed; send it as Authorization: Bearer TOKEN"
_WRONG = "the token is not known here; it may have been replaced"
_NO_CERTIFICATE = "a client's certificate is needed; connect with one of a CA that this server knows"


class AccessError(Exception):
    """A request was refused. detail: the reason, for its sender.  headers: additional headers of the answer.

    who: the name of the token that was sent; None if it is not known.
    """

    def __init__(
        self, status: int, detail: str, headers: Sequence[Header] = (), who: str | None = None
    ) -> None:
        self.status, self.detail, self.headers, self.who = status, detail, tuple(headers), who
        super().__init__(detail)


@dataclass(frozen=True, slots=True, eq=False)
class Caller:
    """The caller of a request.

    name, hash: the name and the hash of the token; None without one.
    scopes: the rights of the caller.
    expires_s: when the token expires, in seconds since 1970; None if it never does.
    limit_per_s: how many events they may send in a second; None sets no limit.
    rate: counts their events against that limit; None without one.
    """

    name: str | None
    scopes: Scopes
    hash: bytes | None = None
    expires_s: float | None = None
    limit_per_s: int | None = None
    rate: Rate | None = None


UNAUTHENTICATED = Caller(None, Scopes())
"""A caller without a token, who may use open routes only."""
ANONYMOUS = Caller(None, Scopes((EVERYTHING,)))
"""The caller of every request to a server that has no tokens."""


class _State(NamedTuple):
    """The rules in force. callers: by the hash of their token."""

    callers: Mapping[bytes, Caller]
    needs_certificate: bool


class _Head(NamedTuple):
    """The headers that a decision reads. A header that was sent more than once is `_SEVERAL`."""

    authorization: bytes | None
    host: bytes | None
    origin: bytes | None
    site: bytes | None


class Guard:
    """Decides about every request of a port. burst_events: the most events that a limited token may send at once.

    needs_certificate: True if all routes but open ones need a client certificate beside the token.
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
        """Replaces the tokens, for new requests and for those in progress. Any thread may call it."""
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
        # This is one assignment, so each decision sees either the old rules or the new ones.
        self._state = _State(callers, needs_certificate)
        self.tokens = tuple(tokens)

    def authorize(
        self, method: str, found: RouteMatch, headers: Iterable[Header], *, has_certificate: bool = False
    ) -> Caller:
        """Returns the caller of a request that is allowed. Raises AccessError (401, 403, 421).

        headers: with names in lower case.
        found: the result of the lookup. If it has no row, a caller without a valid token is refused; the others are
            returned, and the server answers them that the route does not exist.
        has_certificate: True if the client of the connection showed a certificate that was verified.

        This method reads nothing but its arguments, the tokens and the clock.
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
        """Returns the caller of a request in progress, by the tokens in force now. found: the request's row.

        has_certificate: True if the client of the connection showed a certificate that is valid now.
        Raises AccessError if the caller has lost the right to continue.
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
        """Counts events of a caller and returns 0. Over the limit, counts nothing and returns the seconds to wait."""
        return 0.0 if caller.rate is None else caller.rate.take(events, self._now_s())

    def give_back(self, caller: Caller, events: int) -> None:
        """Takes back the count of events that `wait_s` counted and that were not sent."""
        if caller.rate is not None:
            caller.rate.give_back(events)

    def queue_s(self, rate: Rate, events: int) -> float:
        """Puts events in the queue and returns the seconds until their turn. Ended with `Rate.leave`."""
        return rate.queue(events, self._now_s())

    def _known(self, callers: Mapping[bytes, Caller], head: _Head) -> Caller | None:
        """Returns the caller of an open route, or None if they sent no valid token."""
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
        """Lists the tokens that have expired or soon will, for the log."""
        now_s, found = self._now_s(), []
        for token in self.tokens:
            if token.expires_s is None or token.expires_s - now_s > WARNS_BEFORE_S:
                continue
            left_s = token.expires_s - now_s
            when = "has expired" if left_s <= 0 else f"expires in {left_s / 86_400:.1f} days"
            found.append(f"the token {token.name} {when}; `railgun token new` makes another")
        return found


def _missing(found: RouteMatch, caller: Caller) -> str | None:
    """Returns the first scope of a row that a caller lacks, or None."""
    return None if found.route is None else found.route.needs.missing(caller.scopes, found.parameters)


def forbidden(scope: str, caller: Caller) -> AccessError:
    """Makes the error for a caller who lacks a scope."""
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
    """Raises AccessError (403, 421) if a page of another site made the browser send this, or if Host was sent twice."""
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
