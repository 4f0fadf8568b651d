"""Lets a backend score requests in a thread and wait for the answers, and says and notes what happened if none come.

Both backends use it.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

import msgspec

from frontend.problems import Problem, of_event, problem
from frontend.scoring.noted import note_answers
from frontend.scoring.scoring import Answer, StreamView
from frontend.scoring.scoring_thread import InOrder, ScoringThread, Submission
from railgun.catalog.model import ALL, StreamDefinition
from railgun.ingest.accepted import AcceptedBatch
from railgun.ingest.intake import JsonText, MalformedEventError
from railgun.ingest.replies import Reply
from railgun.telemetry.recording import TOTAL, Recording


def placed(accepted: AcceptedBatch, replies: Sequence[Reply | Problem], n: int) -> list[Answer | None]:
    """Return the answers to n texts: each reply, and the problem of each refused event, in its text's place."""
    if not accepted.refused:
        return list(replies)
    answers = without_replies(accepted, n)
    assert accepted.rows is not None
    for row, reply in zip(accepted.rows.tolist(), replies):
        answers[row] = reply
    return answers


def without_replies(accepted: AcceptedBatch, n: int) -> list[Answer | None]:
    """Return the answers to n texts: the problems of refused events, and None for accepted ones."""
    answers: list[Answer | None] = [None] * n
    for row, error in accepted.refused.items():
        answers[row] = of_event(400 if isinstance(error, MalformedEventError) else 422, error)
    return answers


def fields_of_text(text: JsonText) -> Mapping[str, Any]:
    """Return the fields in the text of an event; empty if it is no event."""
    try:
        event = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def id_of(event: Mapping[str, Any], stream: StreamDefinition) -> str | int | msgspec.UnsetType:
    """Return the id in an event; unset if there is none."""
    found = None if stream.id is None else event.get(stream.id)
    return found if isinstance(found, str | int) else msgspec.UNSET


def sent_to(event: Mapping[str, Any], stream: StreamDefinition) -> tuple[str, ...]:
    """Return the partitioners that an event is sent to: those whose field is not null."""
    return tuple(name for name in stream.partitioners if name == ALL or event.get(name) is not None)


_REASONS = {429: "full", 503: "unavailable"}


async def answers_in_time(
    thread: ScoringThread, submission: Submission, recording: Recording
) -> list[Answer | None] | None:
    """Submit a submission, whose waiter is a future, and return its answers; None if they take too long.

    Raises the exception that the future gets.
    """
    answered = submission.answered
    assert isinstance(answered, asyncio.Future)
    timer = _begin(thread, submission)
    try:
        answers: list[Answer | None] | None = await answered
    except asyncio.CancelledError:
        submission.abandoned = True
        raise
    finally:
        timer.cancel()
    _note(recording, submission, answers)
    return answers


class CallbackWaiter:
    """Stands in for a future as `Submission.answered`, for one event that no coroutine waits for.

    The result None means that the time was over.

    late: returns the answers if none came in time.
    tell: is called once, in the event loop, with the answer or the exception.
    """

    __slots__ = ("_done", "_late", "_recording", "_submission", "_tell", "_timer")

    def __init__(
        self,
        recording: Recording,
        late: Callable[[Submission], list[Answer | None]],
        tell: Callable[[Answer | BaseException | None], None],
    ) -> None:
        self._recording, self._late, self._tell = recording, late, tell
        self._done = False

    def begin(self, thread: ScoringThread, submission: Submission) -> None:
        """Have a submission scored, whose waiter this is."""
        self._submission = submission
        self._timer = _begin(thread, submission)

    def done(self) -> bool:
        return self._done

    def set_result(self, result: object) -> None:
        answers: list[Answer | None] | None = result  # type: ignore[assignment]
        submission = self._end()
        _note(self._recording, submission, answers)
        answer: Answer | BaseException | None
        try:
            (answer,) = self._late(submission) if answers is None else answers
        except Exception as error:  # noqa: BLE001 - who waits is told, whatever it is
            answer = error
        self._tell(answer)

    def set_exception(self, exception: BaseException) -> None:
        self._end()
        self._tell(exception)

    def _end(self) -> Submission:
        """End the waiting and return the submission.

        The references between waiter and submission are cut, so that no garbage collection is needed to free them.
        """
        self._done = True
        self._timer.cancel()
        submission = self._submission
        del self._submission, self._timer
        return submission


def unanswered(submission: Submission, view: StreamView | None) -> list[Answer | None]:
    """Return the problems of events that were not answered in time. view: of their stream; None if it is not known."""
    stream = None if view is None else view.definition
    has_id = None if stream is None else stream.id is not None
    what = may_count(has_id=has_id) if submission.taken else "was not taken"
    timed_out = problem(504, late_answer(submission.timeout_ms, what))
    if stream is None:
        return [msgspec.structs.replace(timed_out, partitioners=())] * len(submission.texts)
    events = map(fields_of_text, submission.texts)
    return [
        msgspec.structs.replace(timed_out, id=id_of(event, stream), partitioners=sent_to(event, stream))
        for event in events
    ]


def late_answer(timeout_ms: int, what: str) -> str:
    """Return the detail of the problem of an event that was not answered in time. what: what became of the event."""
    return f"no answer within {timeout_ms} ms; the event {what}"


def may_count(*, has_id: bool | None) -> str:
    """Return the words for an event that may count or not. They say whether it can be sent again.

    has_id: whether its stream has an id field; None if that is not known.
    """
    if has_id is None:
        return "may count; sending it again is safe with its id, and without an id field it would count once more"
    if has_id:
        return "may count; sending it again with its id is safe"
    return "may count; its stream has no id field, so sent again it would count once more"


def sent_again(*, has_id: bool | None) -> str:
    """Return the words for events that count, or may count, about sending them again. has_id: as of `may_count`."""
    if has_id is None:
        return "sending them again is safe with their ids, and without an id field they would count once more"
    if has_id:
        return "sending them again with their ids is safe"
    return "their stream has no id field, so sent again they would count once more"


def note_refused_request(
    recording: Recording, views: Mapping[str, StreamView], stream: str, status: int
) -> None:
    """Count a request that was refused as a whole, if the server was full or not available."""
    reason = _REASONS.get(status)
    if reason is not None and stream in views:
        recording.stream(stream).refused[reason] += 1


def _begin(thread: ScoringThread, submission: Submission) -> asyncio.TimerHandle:
    thread.submit(submission)
    return asyncio.get_running_loop().call_later(submission.timeout_ms / 1000, _give_up, submission)


def _give_up(submission: Submission) -> None:
    """End the wait with None as the result: no answer in time."""
    submission.abandoned = True
    if not submission.answered.done():
        submission.answered.set_result(None)


def _note(recording: Recording, submission: Submission, answers: Sequence[Answer | None] | None) -> None:
    record = recording.stream(submission.stream)
    record.stages[TOTAL].add(perf_counter() - submission.arrived_s)
    if answers is None:
        record.refused["timeout"] += len(submission.texts)
    elif record.wants_answers and submission.reply:
        note_answers(record, answers)


class InThread(ABC):
    """`score` and `submit` of `Scoring` by a thread, for both backends. submission_type: what the thread takes."""

    submission_type: type[Submission] = Submission

    @property
    @abstractmethod
    def recording(self) -> Recording:
        """The notes for monitoring."""

    @abstractmethod
    def _ready_thread(self) -> ScoringThread:
        """Return the thread. Raises ProblemError (503) if events cannot be taken."""

    @abstractmethod
    def _late(self, submission: Submission) -> list[Answer | None]:
        """Return the answers to a submission that was not answered in time."""

    async def score(
        self,
        stream: str,
        texts: Sequence[JsonText],
        *,
        metrics: Sequence[str] | None = None,
        timeout_ms: int,
        takes_partial: bool = False,
        reply: bool = True,
        in_order: InOrder | None = None,
    ) -> list[Answer | None]:
        thread = self._ready_thread()
        submission = self.submission_type.of(
            stream, texts, metrics, timeout_ms, takes_partial=takes_partial, reply=reply, in_order=in_order
        )
        answers = await answers_in_time(thread, submission, self.recording)
        return self._late(submission) if answers is None else answers

    def submit(
        self,
        stream: str,
        text: JsonText,
        *,
        metrics: Sequence[str] | None = None,
        timeout_ms: int,
        takes_partial: bool = False,
        tell: Callable[[Answer | BaseException | None], None],
    ) -> None:
        thread = self._ready_thread()
        waiter = CallbackWaiter(self.recording, self._late, tell)
        waiter.begin(
            thread,
            self.submission_type.of(
                stream, [text], metrics, timeout_ms, takes_partial=takes_partial, reply=True, answered=waiter
            ),
        )
