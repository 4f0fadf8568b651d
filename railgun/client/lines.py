"""Events as lines (NDJSON): which are answered, and which are sent again when a connection ends amid the answers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from railgun.client.attempts import RETRY_S, Attempts, Fate, Setback, of_events, setback_of
from railgun.client.errors import ClientError, ConnectionLostError, ProblemError
from railgun.client.steps import NDJSON_TYPE, Answer, Outcome, Request, Session, Steps, sent

# Of a line among others the server cannot name a time; 429 says that it took nothing of the line, 503 does not say.
_NO_ROOM, _UNAVAILABLE = 429, 503
_MAY_HAVE_STATUS = b'"status"'


def answered_lines(session: Session, stream: str, path: str, lines: bytes) -> Steps[bytes]:
    """Send lines until each has its answer; the answers as lines, in order.

    Lines that were answered before a connection ended are not sent again. Raises ClientError, which has the answers to
    the first lines in `answered`.
    """
    work = _Lines(session, path, [line for line in lines.split(b"\n") if line.strip()])
    attempts = Attempts(session, of_events(stream, len(work.lines)))
    while work.left:
        request = work.request()
        setback = work.take(request, (yield from sent(request)))
        if setback is None:
            continue
        try:
            yield from attempts.again(setback)
        except ClientError as error:
            if all(work.answers):
                break
            error.answered = work.first_answers()
            raise
    return work.first_answers()


@dataclass(slots=True)
class _Lines:
    """answers: by line, b"" where there is none.  left: the places of lines to send, in order: those without an answer,
    and those whose answer may be another the next time.
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
        """What is left. An answer that is asked for again is none any more."""
        for place in self.left:
            self.answers[place] = b""
        content = b"".join(self.lines[place] + b"\n" for place in self.left)
        return Request("POST", self.path, content, NDJSON_TYPE, self.session.timeout_s)

    def take(self, request: Request, outcome: Outcome) -> Setback | None:
        """Note the answers that have come. Gives why others have not."""
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
        """Why a whole response does not end it: it lacks answers, or has these problems in the place of some."""
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
        """The answers to the first lines, up to the first that has none."""
        return b"".join(answer + b"\n" for answer in takewhile(bool, self.answers))


def _retriable(answer: bytes) -> dict[str, object] | None:
    """The problem in the place of a line that may get another answer when it is sent again."""
    if _MAY_HAVE_STATUS not in answer:
        return None
    try:
        body = json.loads(answer)
    except ValueError:
        return None
    is_such = isinstance(body, dict) and "metrics" not in body
    return body if is_such and body.get("status") in (_NO_ROOM, _UNAVAILABLE) else None
