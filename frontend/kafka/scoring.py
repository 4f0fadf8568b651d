"""Scores events by the tasks of a cluster, and asks them for values. It is the scoring of `KafkaBackend`."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future

from frontend.backend.readiness import unavailable
from frontend.kafka.parts import Parts
from frontend.kafka.requests import Request, Requests
from frontend.kafka.running_cluster import RunningCluster
from frontend.problems import Problem, ProblemError, UnknownStreamError
from frontend.scoring.answers_in_time import InThread, note_refused_request, unanswered
from frontend.scoring.noted_queries import noted_query
from frontend.scoring.scoring import Answer
from frontend.scoring.scoring_thread import ScoringThread, Submission
from railgun.ingest.value_queries import KeyValues, ValueRequest
from railgun.telemetry.recording import Recording


class KafkaScoring(InThread):
    """`Scoring` by a cluster. Used in one event loop. now_ms: the clock of events; None uses the system's."""

    submission_type = Request

    def __init__(self, running: RunningCluster, now_ms: Callable[[], int] | None = None) -> None:
        self._running, self._now_ms = running, now_ms
        # Each event looks its stream up, so that costs one call only.
        self.view = running.view
        self._thread: ScoringThread | None = None
        self._requests: Requests | None = None
        self._recording = Recording()

    def start(self, parts: Parts) -> None:
        """Publish events from now on."""
        more = {} if self._now_ms is None else {"now_ms": self._now_ms}
        loop = asyncio.get_running_loop()
        self._requests = Requests(loop, parts.exchange, parts.intakes, parts.replies, self.recording, **more)
        self._thread = ScoringThread(loop, self._requests.publish)

    def end(self) -> None:
        """Publish the events that wait, then end. Blocks until then."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.close()
        self._requests = None

    @property
    def recording(self) -> Recording:
        return self._recording

    def refused(self, stream: str, status: int) -> None:
        if self._running.parts is not None:
            note_refused_request(self.recording, self._running.parts.intakes.now.views, stream, status)

    async def values(self, stream: str, request: ValueRequest, timeout_ms: int) -> list[KeyValues]:
        self.view(stream)
        with noted_query(self.recording.stream(stream)):
            return await self._values(stream, request, timeout_ms)

    async def _values(self, stream: str, request: ValueRequest, timeout_ms: int) -> list[KeyValues]:
        parts = self._running.ready()
        known = parts.intakes.now
        entry = known.catalog.streams.get(stream)
        if entry is None:
            raise UnknownStreamError(stream, known.views)

        def ask() -> Future[list[KeyValues] | Problem]:
            query = known.query_reader(stream).read(request)
            return parts.exchange.ask_values(stream, entry.created, query, timeout_ms)

        found = await asyncio.wrap_future(await asyncio.to_thread(ask))
        if isinstance(found, Problem):
            raise ProblemError(found)
        return found

    def _ready_thread(self) -> ScoringThread:
        self._running.ready()
        if self._thread is None:
            raise unavailable(self._running.readiness())
        return self._thread

    def _late(self, submission: Submission) -> list[Answer | None]:
        assert isinstance(submission, Request)
        # `end` may let go of them meanwhile.
        requests = self._requests
        if submission.pending is not None and requests is not None:
            # Some of the events may be answered, if not all.
            return requests.answers(submission)
        parts = self._running.parts
        return unanswered(
            submission, None if parts is None else parts.intakes.now.views.get(submission.stream)
        )
