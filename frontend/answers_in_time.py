"""How a backend waits for the answers to a request's events, and what it says and notes where none come."""

import asyncio
from collections.abc import Mapping
from time import perf_counter

import msgspec

from frontend.answers_of_requests import id_of, said_by, sent_to
from frontend.backend import Answer, StreamView
from frontend.problems import problem
from frontend.scoring_thread import ScoringThread, Submission
from railgun.telemetry.recording import Recording

_REASONS = {429: "full", 503: "unavailable"}


async def answers_in_time(
    thread: ScoringThread, submission: Submission, recording: Recording
) -> list[Answer | None] | None:
    """The answers to a submission; None where they take longer than it may. Raises the exception that it got."""
    thread.submit(submission)
    timer = asyncio.get_running_loop().call_later(submission.timeout_ms / 1000, _give_up, submission)
    try:
        answered = await submission.answered
    except asyncio.CancelledError:
        submission.abandoned = True
        raise
    finally:
        timer.cancel()
    record = recording.stream(submission.stream)
    record.stages["total"].add(perf_counter() - submission.arrived_s)
    if answered is None:
        record.refused["timeout"] += len(submission.texts)
    return answered  # type: ignore[return-value]


def unanswered(submission: Submission, view: StreamView | None) -> list[Answer | None]:
    """The problems of events that were not answered in time. view: of their stream, if it is there still."""
    stream = None if view is None else view.definition
    has_id = stream is not None and stream.id is not None
    what = may_count(has_id=has_id) if submission.taken else "was not taken"
    said = problem(504, late_answer(submission.timeout_ms, what))
    if stream is None:
        return [msgspec.structs.replace(said, partitioners=())] * len(submission.texts)
    events = map(said_by, submission.texts)
    return [
        msgspec.structs.replace(said, id=id_of(event, stream), partitioners=sent_to(event, stream))
        for event in events
    ]


def late_answer(timeout_ms: int, what: str) -> str:
    """What is said of an event that was not answered in time."""
    return f"no answer within {timeout_ms} ms; the event {what}"


def may_count(*, has_id: bool) -> str:
    """What is said of an event that may count or not, and whether it can be sent again."""
    if has_id:
        return "may count; sending it again with its id is safe"
    return "may count; its stream has no id field, so sent again it would count once more"


def note_refused_request(
    recording: Recording, views: Mapping[str, StreamView], stream: str, status: int
) -> None:
    """Count a request that was refused as a whole, where that says how the server stands."""
    reason = _REASONS.get(status)
    if reason is not None and stream in views:
        recording.stream(stream).refused[reason] += 1


def _give_up(submission: Submission) -> None:
    submission.abandoned = True
    if not submission.answered.done():
        submission.answered.set_result(None)
