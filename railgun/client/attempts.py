"""Decides whether and when a request is sent again, from the outcomes of its attempts so far.

It does no I/O: its functions are generators that yield requests and pauses (steps.py). The calls of a client (calls.py,
lines.py) use it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import msgspec

from railgun.client.address import stream_path
from railgun.client.errors import (
    ClientError,
    ConnectionLostError,
    ProblemError,
    RefusedConnectionError,
    UnreachableError,
)
from railgun.client.steps import (
    JSON_TYPE,
    Answer,
    Failure,
    Outcome,
    Request,
    Session,
    Steps,
    send_once,
    wait,
)

RETRY_S = 0.5
_RETRY_MAX_S, _TELL_S = 10.0, 1.0
_SAFE = "by its id it counts once, so it is safe to send it again"
_FULL = (429, 503)
_GATEWAY = (502, 503)


class Fate(Enum):
    """The fate of a request that was not answered with success."""

    REFUSED = "refused, or there is no server: sending it again changes nothing"
    NO_ROOM = "nothing was taken, and the server names a time to send it again"
    NOBODY_LISTENS = "nothing was taken; a server may be about to listen"
    LOST = "the connection ended: nobody knows whether it was taken"
    UNKNOWN = "the server, or a proxy, does not know whether it was taken"


@dataclass(frozen=True, slots=True)
class Setback:
    """An attempt without success.

    pause_s: the time to wait before the next attempt.
    took_s: the time that this one took.
    """

    fate: Fate
    error: ClientError
    pause_s: float
    took_s: float


def setback_of(session: Session, request: Request, outcome: Outcome) -> Setback:
    """Interpret an outcome that is not a success."""
    if isinstance(outcome, Failure):
        return Setback(_fate_of(outcome.error), outcome.error, RETRY_S, outcome.took_s)
    problem = _table(outcome.content)
    # A proxy may have passed the request on before it answered, so its 503 does not mean that nothing was taken.
    is_railguns = problem.get("status") == outcome.status
    after_s = retry_after_s(outcome.status, outcome.retry_after) if is_railguns else None
    error = ProblemError(
        session.place(request.path),
        outcome.status,
        problem,
        is_retriable=after_s is not None,
    )
    if after_s is not None:
        return Setback(Fate.NO_ROOM, error, after_s, outcome.took_s)
    fate = Fate.UNKNOWN if outcome.status in _GATEWAY else Fate.REFUSED
    return Setback(fate, error, RETRY_S, outcome.took_s)


def _fate_of(error: ClientError) -> Fate:
    if isinstance(error, RefusedConnectionError):
        return Fate.NOBODY_LISTENS
    return Fate.REFUSED if isinstance(error, UnreachableError) else Fate.LOST


def retry_after_s(status: int, retry_after: str | None) -> float | None:
    """Return the time to wait before the next attempt; None unless the answer says that nothing was taken."""
    if status not in _FULL or retry_after is None:
        return None
    try:
        return min(_RETRY_MAX_S, max(RETRY_S, float(retry_after)))
    except ValueError:
        return RETRY_S


def _table(content: bytes) -> dict[str, object]:
    try:
        body = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return {}
    return body if isinstance(body, dict) else {}


# Decides whether to repeat a request whose last attempt may have been taken. It returns None for yes, or the reason
# against it.
MayRepeat: TypeAlias = Callable[["Attempts", Setback], Steps[str | None]]


def repeat_read(attempts: "Attempts", setback: Setback) -> Steps[str | None]:
    """Allow a repeat of a request that changes nothing, after a lost connection."""
    yield from ()
    return "" if setback.fate is Fate.UNKNOWN else None


def repeat_change(attempts: "Attempts", setback: Setback) -> Steps[str | None]:
    """Never allow a repeat of a change. The caller can look whether it was made."""
    yield from ()
    return ""


def repeat_events(stream: str, n: int) -> MayRepeat:
    """Allow a repeat of n events if they have ids, because the server then counts repeated events once."""

    def may_repeat(attempts: "Attempts", setback: Setback) -> Steps[str | None]:
        if stream in attempts.session.streams_with_ids:
            attempts.advice = _SAFE
            return None
        try:
            # The stream is looked up only now: most clients see no setback, and its definition may have changed since.
            definition = yield from attempts.look_up(stream_path(stream))
        except ClientError as error:
            return f"it is not known whether {stream} has an id field ({error}); if it has, {_SAFE}"
        if definition.get("id") is None:
            return f"{stream} has no id field, so it is not sent again"
        remembered = definition.get("dedup_events")
        if isinstance(remembered, int) and n > remembered:
            return f"{stream} remembers {remembered} ids, fewer than were sent, so it is not sent again"
        attempts.advice = _SAFE
        return None

    return may_repeat


class Attempts:
    """The attempts of one call, and the time that they have taken together.

    may_repeat: decides whether a request may be sent again after an outcome; see `MayRepeat`.
    advice: is added to the error's message if the client gives up and the events may have been taken; may be empty.
    """

    def __init__(self, session: Session, may_repeat: MayRepeat) -> None:
        self.session, self._may_repeat = session, may_repeat
        self._waited_s = self._refused_s = 0.0
        self._is_told = self._is_heard = False
        self._in_doubt: ClientError | None = None
        self.advice = ""

    def again(self, setback: Setback) -> Steps[None]:
        """Wait until the request may be sent again.

        Raises the setback's error if a repeat is not allowed, cannot help, or exceeds the client's patience.
        """
        self._note(setback)
        self._is_heard = False
        if setback.fate in (Fate.LOST, Fate.UNKNOWN):
            self._in_doubt = setback.error
            why_not = yield from self._may_repeat(self, setback)
            if why_not is not None:
                raise _explained(setback.error, why_not)
        if not self._is_heard and not (yield from self._pause(setback)):
            error = self._final(setback.error)
            error.gave_up_s = self._gave_up_s(setback)
            raise error

    def look_up(self, path: str) -> Steps[dict[str, object]]:
        """Read the object at a path, within the patience that is left. Raises ClientError."""
        request = Request("GET", path, b"", JSON_TYPE, self.session.timeout_s)
        while True:
            outcome = yield from send_once(request)
            if isinstance(outcome, Answer) and outcome.is_success:
                self._is_heard = True
                return _table(outcome.content)
            setback = setback_of(self.session, request, outcome)
            self._note(setback)
            if not (yield from self._pause(setback)):
                raise setback.error

    def _note(self, setback: Setback) -> None:
        self._waited_s += setback.took_s
        self._refused_s += setback.took_s
        if setback.fate is not Fate.NOBODY_LISTENS:
            self._refused_s = 0.0

    def _gave_up_s(self, setback: Setback) -> float:
        """Return how long the call was repeated; 0 if it was not, since that would not have helped."""
        is_repeated = setback.fate is not Fate.REFUSED and self._waited_s > setback.took_s
        return self._waited_s if is_repeated else 0.0

    def _pause(self, setback: Setback) -> Steps[bool]:
        """Wait before another attempt. Return False if that would not help, or would exceed the client's patience."""
        session, pause_s = self.session, setback.pause_s
        is_refused = setback.fate is Fate.NOBODY_LISTENS
        if (
            setback.fate is Fate.REFUSED
            or self._waited_s + pause_s > session.patience_s
            or (is_refused and self._refused_s + pause_s > session.connects_within_s)
        ):
            return False
        if session.on_wait is not None and not self._is_told and self._waited_s >= _TELL_S:
            self._is_told = True
            session.on_wait(setback.error)
        took_s = yield from wait(pause_s)
        self._waited_s += took_s
        self._refused_s += took_s
        return True

    def _final(self, error: ClientError) -> ClientError:
        """Return the error of the whole call.

        If an earlier attempt may have been taken, the error says so, even if the last attempt was not taken.
        """
        if self._in_doubt is None:
            return error
        if error.may_have_counted:
            return _explained(error, self.advice)
        advice = f": {self.advice}" if self.advice else ""
        found = ConnectionLostError(
            f"{error}; nobody knows whether it was taken before that ({self._in_doubt}){advice}"
        )
        found.__cause__ = error
        return found


def _explained(error: ClientError, why: str) -> ClientError:
    """Add an explanation to an error. why: the reason against a repeat, or the advice to repeat; may be empty."""
    if not why:
        return error
    found = ConnectionLostError(f"{error}; nobody knows whether it counted: {why}")
    found.__cause__ = error
    return found


def send_until_answered(session: Session, request: Request, may_repeat: MayRepeat) -> Steps[Answer]:
    """Send a request, repeatedly if that is allowed, until it succeeds. Raises ClientError."""
    attempts = Attempts(session, may_repeat)
    while True:
        outcome = yield from send_once(request)
        if isinstance(outcome, Answer) and outcome.is_success:
            return outcome
        yield from attempts.again(setback_of(session, request, outcome))
