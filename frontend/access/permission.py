"""Limits authorized callers: how many events they send per second, and how long a request may go on."""

import asyncio
from collections.abc import Callable
from enum import Enum
from http import HTTPStatus

from frontend.problems import ProblemError, problem, refusal, refused
from railgun.access.guard import AccessError, Caller, Guard
from railgun.access.routes import RouteMatch

CHECK_S = 1.0
"""How often it is decided again whether a long request may go on."""
_OUTDATED = (
    "other clients' certificates are good by now; send what has no answer again, on another connection"
)


class Certificate(Enum):
    """The standing of the certificate that a connection's client has shown."""

    NONE = "the client has shown none, or it has run out since"
    GOOD = "it was verified, and still would be"
    OUTDATED = (
        "it was verified by other CAs and lists than those of now: nobody knows whether it still would be"
    )


def no_certificate() -> Certificate:
    """Return the standing for a connection without TLS."""
    return Certificate.NONE


def check_rate(guard: Guard, caller: Caller, events: int) -> None:
    """Count the events of a request. Raises ProblemError (429) if its caller has sent as many as it may."""
    wait_s = guard.wait_s(caller, events)
    if wait_s > 0:
        limit = f"the token {caller.name} may send {caller.limit_per_s} events per second"
        headers = [(b"retry-after", b"%d" % max(1, -(-wait_s // 1)))]
        raise ProblemError(
            problem(HTTPStatus.TOO_MANY_REQUESTS, f"{limit}; send these again a little later"), headers
        )


class PermissionEndedError(ProblemError):
    """A caller was authorized before, and is not any more."""


class Permission:
    """A caller's permission to go on with a request that runs for long. found: the route of the request.

    certificate: returns the standing of the certificate of the request's connection.
    on_end: is called once with the reason when the permission ends.
    """

    def __init__(
        self,
        guard: Guard,
        caller: Caller,
        found: RouteMatch,
        certificate: Callable[[], Certificate] = no_certificate,
        on_end: Callable[[AccessError], object] = lambda error: None,
    ) -> None:
        self._guard, self._caller, self._found = guard, caller, found
        self._certificate = certificate
        self._on_end, self._has_ended = on_end, False

    def check(self) -> None:
        """Decide again by the token's present scopes and limit, and by the present certificates.

        Raises PermissionEndedError: 401 or 403 if the token expired, was replaced, or lost its scope; 403 if a
        certificate is needed and none was shown; 503 if the certificate is to be shown again on another connection.
        """
        certificate = self._certificate()
        try:
            self._caller = self._guard.reauthorize(
                self._caller, self._found, has_certificate=certificate is not Certificate.NONE
            )
        except AccessError as error:
            if not self._has_ended:
                self._has_ended = True
                self._on_end(error)
            ended = refused(error)
        else:
            if certificate is not Certificate.OUTDATED:
                return
            ended = refusal(HTTPStatus.SERVICE_UNAVAILABLE, _OUTDATED)
        raise PermissionEndedError(ended.problem, ended.headers)

    def for_caller(self, error: ProblemError) -> ProblemError:
        """Return a problem in the words that the caller may read."""
        return error.for_caller(self._caller)

    async def turn(self, events: int, is_over: Callable[[], bool]) -> int:
        """Wait until the first of some events may be sent. Count the events of this turn, and return how many they are.

        is_over: returns whether to wait no longer; the events of the turn are sent all the same.
        Raises PermissionEndedError, as `check` does; no events are counted then.
        """
        self.check()
        rate = self._caller.rate
        if rate is None:
            return events
        events, are_sent = min(events, rate.portion), False
        left_s = self._guard.queue_s(rate, events)
        try:
            while left_s > 0 and not is_over():
                step_s = min(left_s, CHECK_S)
                await asyncio.sleep(step_s)
                left_s -= step_s
                self.check()
            are_sent = True
        finally:
            rate.leave(events, are_sent=are_sent)
        return events

    def give_back(self, events: int) -> None:
        """Take events off the caller's count, because they were refused for another reason."""
        self._guard.give_back(self._caller, events)
