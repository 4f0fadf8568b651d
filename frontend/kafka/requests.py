"""Publishes the events of HTTP requests together, and gives each request its own answers.

`KafkaScoring` calls it in the scoring thread.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from time import perf_counter

from frontend.exchange.exchange import Exchange
from frontend.exchange.pending import PendingRequest
from frontend.exchange.streams import StreamIntakes
from frontend.problems import ProblemError, refusal, uncertain
from frontend.scoring.answers_in_time import placed, sent_again, without_replies
from frontend.scoring.scoring import Answer
from frontend.scoring.scoring_thread import Outcome, Submission, deliver
from frontend.topics.recorded import RecordedReplies
from railgun.ingest.accepted import AcceptedBatch
from railgun.ingest.recording import note_batch, note_refused
from railgun.messaging.errors import TransportError
from railgun.telemetry.recording import Recording

_log = logging.getLogger("railgun.frontend")


@dataclass(slots=True, eq=False)
class Request(Submission):
    """A submission to a cluster.

    pending: the request of the exchange that its events were published in; None before that.
    first: the index of its first text among all texts that were published together.
    """

    pending: PendingRequest | None = None
    first: int = 0


@dataclass(frozen=True, slots=True)
class _Together:
    """Requests whose events were published together. n: the number of their texts.  sent_s: when, by perf_counter."""

    requests: list[Request]
    accepted: AcceptedBatch
    n: int
    sent_s: float


class Requests:
    """Publishes events in the scoring thread. Other threads hand the outcomes to the event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        exchange: Exchange,
        intakes: StreamIntakes,
        replies: RecordedReplies,
        recording: Recording,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._loop, self._exchange, self._intakes = loop, exchange, intakes
        self._replies, self._recording, self._now_ms = replies, recording, now_ms

    def publish(self, batch: list[Submission]) -> list[Outcome]:
        """Have all events sent. Return the outcomes of requests that have theirs at once, such as refusals."""
        together: dict[tuple[str, bool], list[Request]] = {}
        for each in batch:
            assert isinstance(each, Request)
            together.setdefault((each.stream, each.reply), []).append(each)
        outcomes: list[Outcome] = []
        for (stream, reply), own in together.items():
            try:
                outcomes += self._publish(stream, own, reply)
            except ProblemError as error:
                outcomes += [(each, error) for each in own]
            except TransportError as error:
                outcomes += [(each, refusal(503, str(error))) for each in own]
            except Exception as error:  # noqa: BLE001 - every request of the batch is told
                _log.exception("publishing stopped half-way")
                message = f"a defect stopped the publishing ({type(error).__name__}); see the server's log"
                outcomes += [(each, refusal(500, message)) for each in own]
        return outcomes

    def answers(self, request: Request) -> list[Answer | None]:
        """Return the answers to a request's events by now. Events that still wait get problems."""
        pending = request.pending
        assert pending is not None
        with self._exchange.pending_table.lock:
            replies = pending.answers(request.metrics, takes_partial=request.takes_partial)
        context: _Together = pending.context
        return _own(request, placed(pending.accepted, replies, context.n))

    def _publish(self, stream: str, own: list[Request], reply: bool) -> list[Outcome]:
        """Send the events of requests to one stream. Returns the outcomes, if none of the events was accepted."""
        intake = self._intakes.now.intakes.get(stream)
        if intake is None:
            raise refusal(404, f"there is no stream {stream[:80]!r}")
        if intake.of_records_alone is not None:
            raise refusal(422, intake.of_records_alone, [((), intake.of_records_alone)])
        record = self._recording.stream(stream)
        timer = record.stage_timer()
        began_s = perf_counter()
        first = 0
        for each in own:
            record.stages["queue"].add(began_s - each.arrived_s)
            each.first = first
            first += len(each.texts)
        texts = [text for each in own for text in each.texts] if len(own) > 1 else own[0].texts
        accepted = intake.take(texts, self._now_ms())
        timer.end("admission")
        note_refused(record, accepted.refused.values())
        context = _Together(own, accepted, first, perf_counter())
        if not len(accepted):
            return _without(context)
        if reply:
            self._replies.prepare(stream)
            timeout_ms = max(each.timeout_ms for each in own)
            pending = self._exchange.ask(stream, accepted, None, timeout_ms, self._finish, context)
            for each in own:
                each.pending = pending
        else:
            sent = self._exchange.publish(stream, accepted)
            sent.add_done_callback(partial(self._sent, stream, context))
        timer.end("publish")
        return []

    def _finish(self, finished: list[PendingRequest]) -> None:
        """Make the outcomes of finished requests. The collector's thread calls it."""
        outcomes: list[Outcome] = []
        for pending in finished:
            context: _Together = pending.context
            record = self._recording.stream(pending.stream)
            record.stages["process"].add(perf_counter() - context.sent_s)
            if pending.logged_s:
                record.stages["log"].add(pending.logged_s - context.sent_s)
            timer = record.stage_timer()
            if pending.error is None and not pending.left:
                note_batch(record, len(pending), pending.gathered)
            answers: dict[tuple[tuple[str, ...] | None, bool], list[Answer | None]] = {}
            own: list[Outcome] = []
            for each in context.requests:
                takes_partial = each.takes_partial and pending.left > 0
                wanted = each.metrics, takes_partial
                if wanted not in answers:
                    replies = pending.answers(each.metrics, takes_partial=takes_partial)
                    answers[wanted] = placed(pending.accepted, replies, context.n)
                own.append((each, _own(each, answers[wanted])))
            timer.end("encode")
            outcomes += self._recorded(pending, own)
        self._loop.call_soon_threadsafe(deliver, outcomes)

    def _recorded(self, pending: PendingRequest, outcomes: list[Outcome]) -> list[Outcome]:
        """Return the outcomes that can be delivered now: none if replies must be recorded in the output topic first."""
        try:
            written = self._replies.record(pending)
        except TransportError as error:
            return _unrecorded(pending, outcomes, error)
        if written is None:
            return outcomes
        written.add_done_callback(partial(self._written, pending, outcomes))
        return []

    def _written(self, pending: PendingRequest, outcomes: list[Outcome], written: Future[list[int]]) -> None:
        """Deliver outcomes whose replies are recorded. The producer's thread calls it."""
        error = written.exception()
        due = outcomes if error is None else _unrecorded(pending, outcomes, error)
        self._loop.call_soon_threadsafe(deliver, due)

    def _sent(self, stream: str, context: _Together, sent: Future[list[int]]) -> None:
        """Deliver the outcomes of events that want no replies and are durable. The producer's thread calls it."""
        error = sent.exception()
        record = self._recording.stream(stream)
        record.stages["durable"].add(perf_counter() - context.sent_s)
        if error is None:
            note_batch(record, len(context.accepted), {})
            outcomes = _without(context)
        else:
            view = self._intakes.now.views.get(stream)
            has_id = None if view is None else view.definition.id is not None
            message = f"{error}; the events may count; {sent_again(has_id=has_id)}"
            outcomes = [(each, uncertain(message)) for each in context.requests]
        self._loop.call_soon_threadsafe(deliver, outcomes)


def _unrecorded(pending: PendingRequest, outcomes: list[Outcome], error: BaseException) -> list[Outcome]:
    """Return problems in place of outcomes whose replies could not be recorded."""
    again = sent_again(has_id=pending.homes.has_id)
    message = f"the replies could not be recorded: {error}; the events count; {again}"
    return [(each, uncertain(message)) for each, _ in outcomes]


def _own(request: Request, answers: list[Answer | None]) -> list[Answer | None]:
    """Return a request's answers among those to all texts that were published together."""
    after = request.first + len(request.texts)
    return answers if after - request.first == len(answers) else answers[request.first : after]


def _without(context: _Together) -> list[Outcome]:
    """Return the outcomes of requests that get no replies: only the problems of refused events."""
    answers = without_replies(context.accepted, context.n)
    return [(each, _own(each, answers)) for each in context.requests]
