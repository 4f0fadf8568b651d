"""The backend in this process: `railgun.Engine`, one thread that scores, and threads for calls that take long.

Live backfills are installed in threads of their own, since they follow the log until they have caught up.
"""

import asyncio
import dataclasses
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

from frontend.embedded.problems import as_problem, of_scoring
from frontend.no_cluster import NoCluster
from frontend.problems import UnknownStreamError, refusal
from frontend.scoring.answers_in_time import note_refused_request, placed, unanswered, without_replies
from frontend.scoring.in_thread import InThread
from frontend.scoring.noted_queries import noted_query
from frontend.scoring.scoring import READY, STOPPING, Answer, Readiness, StreamView, unavailable
from frontend.scoring.scoring_thread import Outcome, ScoringThread, Submission
from railgun.catalog.model import StreamDefinition
from railgun.engine.engine import Engine
from railgun.engine.errors import EngineError, QueryError, no_backfill_error
from railgun.engine.folder import LOG
from railgun.engine.status import MetricStatus
from railgun.host.disk_usage import measure_disk
from railgun.host.host_state import one_line
from railgun.ingest.replies import ScoredBatch, replies_of
from railgun.ingest.value_queries import KeyValues, QueryRefusedError, ValueRequest
from railgun.registry.change_log import LoggedChange
from railgun.registry.origin import Origin
from railgun.telemetry.reading import DiskReading, EngineReading
from railgun.telemetry.recording import Recording

_log = logging.getLogger("railgun.frontend")


class Installs:
    """By stream: under way, or how the last one ended. Used in one event loop."""

    def __init__(self) -> None:
        self._threads: dict[str, threading.Thread] = {}
        self._failures: dict[str, str] = {}

    def begin(self, stream: str, install: Callable[[], None]) -> None:
        """Let one begin, unless one is under way."""
        known = self._threads.get(stream)
        if known is not None and known.is_alive():
            return
        self._failures.pop(stream, None)
        thread = threading.Thread(
            target=self._run, args=(stream, install), name="railgun-install", daemon=True
        )
        self._threads[stream] = thread
        thread.start()

    def failure(self, stream: str) -> str | None:
        """Why the last one of a stream came to nothing."""
        return self._failures.get(stream)

    def _run(self, stream: str, install: Callable[[], None]) -> None:
        try:
            install()
        except Exception as error:  # noqa: BLE001 - every request of the batch is told
            self._failures[stream] = one_line(error)
            _log.error("the deepening of %s was not installed: %s", stream, error)


T = TypeVar("T")
# Value queries that may wait.
_QUERIES_MAX = 256
_STARTING = Readiness(False, "starting: the data is being recovered")


class EmbeddedBackend(InThread, NoCluster):
    """open_engine: opens the engine, in a thread; `start` waits for it. Used in one event loop.

    stop_opening: has `open_engine` raise CompilingStoppedError, unless it is opening the data already.
    """

    # What is being recovered can only be closed once it is open.
    cancels_start = False

    def __init__(
        self, open_engine: Callable[[], Engine], stop_opening: Callable[[], object] = lambda: None
    ) -> None:
        self._open_engine, self._stop_opening = open_engine, stop_opening
        self._engine: Engine | None = None
        self._thread: ScoringThread | None = None
        self._views: dict[str, StreamView] = {}
        # Changes wait in the event loop: its threads are few, and those that waited would keep out whoever only looks.
        self._changing, self._turns = threading.Lock(), asyncio.Lock()
        self._standing = self._starting = _STARTING
        self._nothing = Recording()
        # A thread of their own: they may wait for events, and nobody shall wait for them.
        self._query_thread, self._queries = ThreadPoolExecutor(1, "values"), 0
        self._installs = Installs()

    async def start(self) -> None:
        """Recover and compile. Raises EngineError; CompilingStoppedError after `stop_starting`."""
        engine = await asyncio.to_thread(self._open_engine)
        self._engine = engine
        await asyncio.to_thread(self.refresh)
        self._thread = ScoringThread(asyncio.get_running_loop(), partial(self._score, engine))
        if self._standing is _STARTING:
            self._standing = READY

    def stop_starting(self) -> None:
        self._stop_opening()

    def is_doing(self, what: str) -> None:
        """Told what its start is about, for people. From any thread."""
        self._starting = Readiness(False, f"starting: {what}")

    def readiness(self) -> Readiness:
        if self._standing is _STARTING:
            return self._starting
        if self._standing.ready and self._engine is not None and self._engine.failure is not None:
            self._standing = Readiness(False, self._engine.failure, failed=True)
        return self._standing

    def unanswered(self) -> list[dict[str, Any]]:
        """All tasks are in this process, and are answered as long as it is ready."""
        return []

    def view(self, stream: str) -> StreamView:
        found = self._views.get(stream)
        if found is None:
            self._the_engine()
            raise UnknownStreamError(stream, self._views)
        return found

    @property
    def recording(self) -> Recording:
        """What the engine notes for monitoring; empty before there is one."""
        return self._nothing if self._engine is None else self._engine.recording

    def reading(self) -> EngineReading | None:
        """How the tasks stood lately."""
        return None if self._engine is None else self._engine.reading

    def disk(self) -> DiskReading | None:
        """What lies on the disk now. Takes as long as there are files."""
        engine = self._engine
        return None if engine is None else measure_disk(engine.folder, engine.folder / LOG)

    def refused(self, stream: str, status: int) -> None:
        note_refused_request(self.recording, self._views, stream, status)

    # --- events ------------------------------------------------------------------------------------

    def _ready_thread(self) -> ScoringThread:
        self._the_engine()
        if self._thread is None:
            raise unavailable(self._standing)
        return self._thread

    async def values(self, stream: str, request: ValueRequest, timeout_ms: int) -> list[KeyValues]:
        self.view(stream)
        with noted_query(self.recording.stream(stream)):
            return await self._values(stream, request, timeout_ms)

    async def _values(self, stream: str, request: ValueRequest, timeout_ms: int) -> list[KeyValues]:
        def ask(engine: Engine) -> list[KeyValues]:
            try:
                return engine.key_values(stream, request)
            except QueryError as error:
                raise QueryRefusedError(error.errors) from error

        engine = self._the_engine()
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

    def _late(self, submission: Submission) -> list[Answer | None]:
        return unanswered(submission, self._views.get(submission.stream))

    def _score(self, engine: Engine, batch: list[Submission]) -> list[Outcome]:
        """In the scoring thread."""
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

    # --- streams and metrics -----------------------------------------------------------------------

    async def streams(self) -> list[StreamDefinition]:
        return await self._call(lambda engine: engine.streams())

    async def create_stream(self, definition: StreamDefinition, origin: Origin) -> bool:
        return await self._change(lambda engine: engine.create_stream(definition, origin=origin))

    async def evolve_stream(
        self, stream: str, settings: Mapping[str, Any], origin: Origin
    ) -> StreamDefinition:
        await self._change(lambda engine: engine.evolve(stream, settings, origin=origin))
        return self.view(stream).definition

    async def drop_stream(self, stream: str, origin: Origin) -> None:
        await self._change(lambda engine: engine.drop_stream(stream, origin=origin))

    async def add_metrics(self, stream: str, sql: str, origin: Origin) -> tuple[list[MetricStatus], bool]:
        def add(engine: Engine) -> tuple[list[MetricStatus], bool]:
            names, is_new = engine.register_metrics(stream, sql, origin=origin)
            return [each for each in engine.metrics(stream) if each.name in names], is_new

        return await self._change(add)

    async def metrics(self, stream: str) -> list[MetricStatus]:
        return await self._call(lambda engine: engine.metrics(stream))

    async def drop_metric(self, stream: str, name: str, origin: Origin) -> None:
        await self._change(lambda engine: engine.drop_metric(stream, name, origin=origin))

    async def change_log(self, limit: int, before: int | None) -> list[LoggedChange]:
        return await self._call(lambda engine: engine.change_log(limit, before))

    async def explain(self, stream: str, sql: str) -> dict[str, Any]:
        return await self._call(lambda engine: engine.explain(stream, sql))

    async def begin_deepening(self, stream: str, cut_ms: int | None) -> dict[str, Any]:
        await self._call(lambda engine: engine.begin_deepening(stream, cut_ms))
        return await self.deepening(stream)

    async def install_deepening(self, stream: str, origin: Origin) -> dict[str, Any]:
        engine = self._the_engine()
        if await self._call(lambda engine: engine.deepening(stream)) is None:
            raise as_problem(no_backfill_error(stream))
        self._installs.begin(stream, lambda: engine.deepen(stream, origin=origin))
        return await self.deepening(stream)

    async def deepening(self, stream: str) -> dict[str, Any]:
        standing = await self._call(lambda engine: engine.deepening(stream))
        failure = self._installs.failure(stream)
        if standing is None:
            history = await self._call(lambda engine: engine.history(stream))
            return {"state": "none", "history": history, "failure": failure}
        state = "failed" if failure is not None else standing.state
        return {**dataclasses.asdict(standing), "state": state, "failure": standing.failure or failure}

    async def give_up_deepening(self, stream: str) -> None:
        await self._call(lambda engine: engine.give_up_deepening(stream))

    async def status(self) -> dict[str, Any]:
        return await self._call(lambda engine: dataclasses.asdict(engine.status()))

    async def close(self) -> None:
        if not self._standing.failed:
            self._standing = STOPPING
        thread, self._thread = self._thread, None
        engine, self._engine = self._engine, None
        if thread is not None:
            await asyncio.to_thread(thread.close)
        self._query_thread.shutdown(wait=False, cancel_futures=True)
        if engine is not None:
            await asyncio.to_thread(engine.close)

    def _the_engine(self) -> Engine:
        standing = self.readiness()
        if self._engine is None or not standing.ready:
            raise unavailable(standing)
        return self._engine

    async def _call(self, do: Callable[[Engine], T]) -> T:
        engine = self._the_engine()
        try:
            return await asyncio.to_thread(do, engine)
        except EngineError as error:
            raise as_problem(error) from error

    async def _change(self, do: Callable[[Engine], T]) -> T:
        def changed(engine: Engine) -> T:
            # A change that nobody waits for any more may still be made beside the next one.
            with self._changing:
                try:
                    return do(engine)
                finally:
                    self.refresh()

        self._the_engine()
        async with self._turns:
            return await self._call(changed)

    def refresh(self) -> None:
        """Note what there is now, for the scoring route. Whoever changes the engine beside this backend calls it."""
        engine = self._engine
        if engine is None:
            return
        entries = engine.catalog().streams
        self._views = {name: StreamView(entry.stream, entry.names) for name, entry in entries.items()}


def _shared(own: Sequence[Submission], scored: ScoredBatch) -> list[Outcome]:
    """The answers of a batch, each request's own."""
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
