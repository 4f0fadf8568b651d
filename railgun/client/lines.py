"""Sends events as lines (NDJSON), and sends the unanswered ones again after a lost connection. calls.py calls it.

It does no I/O (see steps.py).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from railgun.client.attempts import RETRY_S, Attempts, Fate, Setback, repeat_events, setback_of
from railgun.client.errors import ClientError, ConnectionLostError, ProblemError
from railgun.client.steps import NDJSON_TYPE, Answer, Outcome, Request, Session, Steps, send_once

# The statuses in the answer to a single line, which cannot name a time for a repeat. After 429 the server took nothing
# of the line; after 503 it may have.
_NO_ROOM, _UNAVAILABLE = 429, 503
_MAY_HAVE_STATUS = b'"status"'


def answered_lines(session: Session, stream: str, path: str, lines: bytes) -> Steps[bytes]:
    """Send lines until each has its answer. Return the answers as lines, in order.

    Lines that were answered before a connection was lost are not sent again. Raises ClientError, whose `answered` has
    the answers to the first lines.
    """
    work = _Lines(session, path, [line for line in lines.split(b"\n") if line.strip()])
    attempts = Attempts(session, repeat_events(stream, len(work.lines)))
    while work.left:
        request = work.request()
        setback = work.take(request, (yield from send_once(request)))
        if setback is None:
            continue
        try:
            yield from attempts.again(setback)
        except ClientError as error:
            # Answers that a repeat might have changed are final now.
            if all(work.answers):
                break
            error.answered = work.first_answers()
            raise
    return work.first_answers()


@dataclass(slots=True)
class _Lines:
    """The lines of a call, with their answers so far.

    answers: by line; b"" if there is none.
    left: the places of the lines to send, in order. They have no answer, or one that a repeat may change.
    """

    session: Session
    path: str
    lines: Sequence[bytes]
    answers: list[bytes] = field(init=False)
    left: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.answers = [b""] * len(self.lines)
        self.left = list(range(len(self.lines)))

    def request(self) -> Request:
        """Make the request for the lines that are left, and forget the answers that they have."""
        for place in self.left:
            self.answers[place] = b""
        content = b"".join(self.lines[place] + b"\n" for place in self.left)
        return Request("POST", self.path, content, NDJSON_TYPE, self.session.timeout_s)

    def take(self, request: Request, outcome: Outcome) -> Setback | None:
        """Record the answers that came. Return the reason if some are missing, or None."""
        is_success = isinstance(outcome, Answer) and outcome.is_success
        whole = outcome.content.split(b"\n")
        came = whole[:-1] if not isinstance(outcome, Answer) or is_success else []
        if len(came) > len(self.left):
            raise ClientError(
                f"{self.session.place(self.path)}: {len(self.left)} events got {len(came)} answers; is this a Railgun "
                "server?"
            )
        again: list[tuple[int, dict[str, object]]] = []
        for place, answer in zip(self.left, came):
            self.answers[place] = answer
            problem = _retriable(answer)
            if problem is not None:
                again.append((place, problem))
        rest = self.left[len(came) :]
        self.left = [place for place, _ in again] + rest
        if not self.left:
            return None
        if not is_success:
            return setback_of(self.session, request, outcome)
        return self._unanswered([] if rest else [problem for _, problem in again], outcome.took_s)

    def _unanswered(self, problems: Sequence[dict[str, object]], took_s: float) -> Setback:
        """Return the setback of a response that is whole and still leaves lines to send.

        problems: the problems that answered lines which are sent again; empty if answers are missing.
        """
        place = self.session.place(self.path)
        if not problems:
            error: ClientError = ConnectionLostError(f"{place}: it ended before all lines were answered")
            return Setback(Fate.LOST, error, RETRY_S, took_s)
        is_taken = any(each["status"] == _UNAVAILABLE for each in problems)
        status = _UNAVAILABLE if is_taken else _NO_ROOM
        first = next(each for each in problems if each["status"] == status)
        error = ProblemError(place, status, first, is_retriable=not is_taken)
        return Setback(Fate.UNKNOWN if is_taken else Fate.NO_ROOM, error, RETRY_S, took_s)

    def first_answers(self) -> bytes:
        """Return the answers to the lines before the first unanswered one."""
        return b"".join(answer + b"\n" for answer in takewhile(bool, self.answers))


def _retriable(answer: bytes) -> dict[str, object] | None:
    """Return the problem in an answer that a repeat of the line may change, or None."""
    if _MAY_HAVE_STATUS not in answer:
        return None
    try:
        body = json.loads(answer)
    except ValueError:
        return None
    is_such = isinstance(body, dict) and "metrics" not in body
    return body if is_such and body.get("status") in (_NO_ROOM, _UNAVAILABLE) else None
