"""Scores events by the engine of this process, and answers value queries from it.

It is the scoring of `EmbeddedBackend`.
"""

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter

from frontend.backend.readiness import unavailable
from frontend.embedded.problems import as_problem, of_scoring
from frontend.embedded.running_engine import RunningEngine
from frontend.problems import refusal
from frontend.scoring.answers_in_time import (
    InThread,
    note_refused_request,
    placed,
    unanswered,
    without_replies,
)
from frontend.scoring.noted_queries import noted_query
from frontend.scoring.scoring import Answer
from frontend.scoring.scoring_thread import Outcome, ScoringThread, Submission
from railgun.engine.engine import Engine
from railgun.engine.errors import QueryError
from railgun.ingest.replies import ScoredBatch, replies_of
from railgun.ingest.value_queries import KeyValues, QueryRefusedError, ValueRequest
from railgun.registry.errors import EngineError
from railgun.telemetry.recording import Recording

# How many value queries may wait.
_QUERIES_MAX = 256
_log = logging.getLogger("railgun.frontend")


class EmbeddedScoring(InThread):
    """`Scoring` by an engine of this process. Used in one event loop."""

    def __init__(self, running: RunningEngine) -> None:
        self._running = running
        # Each event looks its stream up, so that costs one call only.
        self.view = running.view
        self._thread: ScoringThread | None = None
        # Value queries have a thread of their own: they may wait for events, and no other call must wait for them.
        self._query_thread, self._queries = ThreadPoolExecutor(1, "values"), 0

    def start(self, engine: Engine) -> None:
        """Score by this engine from now on."""
        self._thread = ScoringThread(asyncio.get_running_loop(), partial(self._score, engine))

    @property
    def recording(self) -> Recording:
        return self._running.recording

    def refused(self, stream: str, status: int) -> None:
        note_refused_request(self.recording, self._running.views, stream, status)

    async def values(self, stream: str, request: ValueRequest, timeout_ms: int) -> list[KeyValues]:
        self.view(stream)
        with noted_query(self.recording.stream(stream)):
            return await self._values(stream, request, timeout_ms)

    async def close(self) -> None:
        """Score the events that wait, then end."""
        thread, self._thread = self._thread, None
        if thread is not None:
            await asyncio.to_thread(thread.close)
        self._query_thread.shutdown(wait=False, cancel_futures=True)

    async def _values(self, stream: str, request: ValueRequest, timeout_ms: int) -> list[KeyValues]:
        def ask(engine: Engine) -> list[KeyValues]:
            try:
                return engine.key_values(stream, request)
            except QueryError as error:
                raise QueryRefusedError(error.errors) from error

        engine = self._running.ready()
        if self._queries >= _QUERIES_MAX:
            raise refusal(503, f"{self._queries} value queries wait; send it again a little later")
        self._queries += 1
        try:
            found = asyncio.get_running_loop().run_in_executor(self._query_thread, ask, engine)
            return await asyncio.wait_for(found, timeout_ms / 1000)
        except TimeoutError:
            raise refusal(504, f"no answer within {timeout_ms} ms; a query can be sent again") from None
        except EngineError as error:
            raise as_problem(error) from error
        finally:
            self._queries -= 1

    def _ready_thread(self) -> ScoringThread:
        self._running.ready()
        if self._thread is None:
            raise unavailable(self._running.readiness())
        return self._thread

    def _late(self, submission: Submission) -> list[Answer | None]:
        return unanswered(submission, self._running.views.get(submission.stream))

    def _score(self, engine: Engine, batch: list[Submission]) -> list[Outcome]:
        """Score submissions. The scoring thread calls it."""
        by_stream: dict[str, list[Submission]] = {}
        for submission in batch:
            by_stream.setdefault(submission.stream, []).append(submission)
        outcomes: list[Outcome] = []
        for stream, own in by_stream.items():
            try:
                texts = [text for each in own for text in each.texts] if len(own) > 1 else own[0].texts
                taken_s = perf_counter()
                scored = engine.score_each(stream, texts)
                record = engine.recording.stream(stream)
                for each in own:
                    record.stages["queue"].add(taken_s - each.arrived_s)
                timer = record.stage_timer()
                outcomes += _shared(own, scored)
                timer.end("encode")
            except EngineError as error:
                answer = of_scoring(error, has_stopped=engine.failure is not None)
                outcomes += [(each, answer) for each in own]
            except Exception as error:  # noqa: BLE001 - every request of the batch is told
                _log.exception("scoring stopped half-way")
                what = f"a defect stopped the scoring ({type(error).__name__}); see the server's log"
                outcomes += [(each, refusal(500, what)) for each in own]
        return outcomes


def _shared(own: Sequence[Submission], scored: ScoredBatch) -> list[Outcome]:
    """Return for each submission its own of the batch's answers. own: the submissions, in the order of their texts."""
    replies: dict[tuple[str, ...] | None, list[Answer | None]] = {}
    outcomes: list[Outcome] = []
    first = 0
    n = sum(len(each.texts) for each in own)
    for each in own:
        if not each.reply:
            answers = without_replies(scored.accepted, n)
        elif each.metrics in replies:
            answers = replies[each.metrics]
        else:
            answers = replies[each.metrics] = placed(scored.accepted, replies_of(scored, each.metrics), n)
        outcomes.append((each, answers if len(own) == 1 else answers[first : first + len(each.texts)]))
        first += len(each.texts)
    return outcomes
