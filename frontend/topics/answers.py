"""Writes answers to the output topic: replies and dead letters, then the positions that they were made from."""

import heapq
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from time import monotonic, perf_counter

from frontend.exchange.pending import PendingRequest
from frontend.problems import ProblemError
from frontend.scoring.noted import note_answers
from frontend.topics.late_letters import late_letters
from frontend.topics.reply_headers import ReplyHeaders
from frontend.topics.route import Means, Route
from frontend.topics.stream_output import ReplyEncoder, fitting_key
from frontend.topics.windows import ASK_MOST_MS, Run, Windows
from railgun.catalog.model import ReplyKey
from railgun.ingest.recording import note_batch
from railgun.messaging.errors import TransportError, TransportFailedError, TransportUnavailableError
from railgun.messaging.kafka.group import GroupMember
from railgun.messaging.kafka.output import Outgoing, Output, OutputAbortedError
from railgun.messaging.transport import TopicPartition
from railgun.telemetry.recording import TOTAL, StreamRecord

# Two runs wait for answers: one that the tasks have, and one that is on its way. A task that stands still holds up the
# events of others for no longer than `_PACE_S`.
_PUBLISHED_RUNS, _PACE_S = 2, 0.01
# The pauses after an aborted write, and before a run is published again; and the longest sleep of the thread.
_ABORTED_S, _AGAIN_S, _IDLE_S = 0.05, 0.2, 0.5

_log = logging.getLogger("railgun.frontend")


class AnswerThread:
    """Publishes runs, publishes them again if no answer comes, and writes the answers in a thread of its own.

    on_failure: called with the reason if nothing can be written any more.
    """

    def __init__(
        self,
        route: Route,
        means: Means,
        windows: Windows,
        reading: GroupMember,
        output: Output,
        record: StreamRecord,
        on_failure: Callable[[str], None],
    ) -> None:
        stream = route.stream
        self._stream, self._exchange, self._windows = stream, means.exchange, windows
        self._reading, self._output, self._record = reading, output, record
        self._on_failure = on_failure
        self._samples, self._created = means.samples, route.created
        self._to, self._encoder = route.output, ReplyEncoder(route.output)
        self._changed = windows.changed
        self._answered: list[PendingRequest] = []
        # A heap of runs to publish again: (when, a number that breaks ties, the run).
        self._again: list[tuple[float, int, Run]] = []
        self._numbers = count()
        self._published = 0
        self._ended = False
        # Why nothing was written the last time. Writing is tried many times a second, but the reason is logged once.
        self._held_up_by: object = None
        self.dead_letters = 0
        self._thread = threading.Thread(target=self._run, name=f"output-{stream}", daemon=True)
        self._thread.start()

    @property
    def commits(self) -> bool:
        """Whether positions are written with the answers."""
        return self._output.commits

    @property
    def is_over(self) -> bool:
        """Whether the thread that writes has ended."""
        return not self._thread.is_alive()

    def close(self) -> None:
        """Write no more. A thread that is stuck in the output is not waited for."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        while not (self.is_over or self._output.is_stuck):
            self._thread.join(_IDLE_S)

    def check(self) -> None:
        """Check the output. Raises TransportUnavailableError if nothing will be written any more."""
        if self._output.is_stuck:
            raise TransportUnavailableError(
                self._to.topic, "a transaction does not come to its end", "It is begun anew by itself"
            )

    def ask(self, run: Run) -> bool:
        """Publish a run's events; return False if that is not possible now. Any thread may call it."""
        exchange, accepted = self._exchange, run.accepted
        timer = self._record.stage_timer()
        try:
            exchange.pending_table.check(len(accepted), 0)
            run.published_s = perf_counter()
            with self._changed:
                self._published += 1
            exchange.ask(self._stream, accepted, run.positions(), run.patience_ms, self._finish, run)
        except ProblemError:
            with self._changed:
                self._published -= 1
            return False
        timer.end("publish")
        return True

    def pace(self) -> None:
        """Wait until few runs have no answer yet, or for a moment.

        What comes meanwhile is read together, which costs less than reading one record after another.
        """
        if self._published >= _PUBLISHED_RUNS:
            with self._changed:
                self._changed.wait_for(lambda: self._published < _PUBLISHED_RUNS, _PACE_S)

    def _finish(self, finished: list[PendingRequest]) -> None:
        """Take over answered runs. The collector's thread calls it."""
        with self._changed:
            self._published -= len(finished)
            self._answered += finished
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            while not self._ended:
                self._round()
        except TransportFailedError as error:
            self._on_failure(f"{error.place}: {error.reason}")
        except TransportError as error:
            self._on_failure(str(error))
        except Exception as error:  # noqa: BLE001 - it is begun again
            _log.exception("a defect stopped the answers of %s", self._stream)
            self._on_failure(f"a defect: {type(error).__name__}")

    def _round(self) -> None:
        with self._changed:
            # The reading thread does not notify `changed` when it continues, so this looks again now and then.
            if not (self._answered or self._ended or (self._is_alive() and self._windows.has_ready())):
                self._changed.wait(self._patience_s())
            answered, self._answered = self._answered, []
        for request in answered:
            self._note(request)
        while self._again and self._again[0][0] <= monotonic():
            self._ask_again(heapq.heappop(self._again)[2])
        if self._is_alive():
            self._write()

    def _patience_s(self) -> float:
        """Return how long the thread may sleep: at most until a run has to be published again."""
        return max(0.0, min(self._again[0][0] - monotonic(), _IDLE_S)) if self._again else _IDLE_S

    def _is_alive(self) -> bool:
        """Return whether the reading thread was heard of lately. If it was not, others may have the partitions."""
        return monotonic() - self._windows.alive_s <= self._reading.session_s / 2

    def _note(self, request: PendingRequest) -> None:
        """Encode the replies to a run; without all of them, have it published again."""
        run: Run = request.context
        if run.window.is_abandoned:
            return
        record = self._record
        record.stages["process"].add(perf_counter() - run.published_s)
        if request.error is not None or request.left:
            if request.error is not None:
                _log.warning("%s: %s", self._stream, request.error.detail)
            else:
                run.patience_ms = min(2 * run.patience_ms, ASK_MOST_MS)
            heapq.heappush(self._again, (monotonic() + _AGAIN_S, next(self._numbers), run))
            return
        timer = record.stage_timer()
        replies = request.answers()
        if record.wants_answers:
            note_answers(record, replies)
        if self._to.discards_late:
            run.late_letters = list(late_letters(run.held, self._stream, replies))
        if self._samples is not None:
            where, accepted = run.window.where, request.accepted
            run.samples = self._samples.of_topic(
                self._stream, self._created, replies, accepted, where, run.offsets
            )
        values = self._encoder.encoded(replies, request.accepted)
        if self._to.key is ReplyKey.INPUT:
            run.keys = [fitting_key(message.key(), value) for message, value in zip(run.held, values)]
        else:
            run.keys = [str(each).encode() for each in request.accepted.ids]
        run.held, run.values = (), values
        note_batch(record, len(request), request.gathered)
        timer.end("encode")

    def _ask_again(self, run: Run) -> None:
        if not run.window.is_abandoned and not self.ask(run):
            heapq.heappush(self._again, (monotonic() + _AGAIN_S, next(self._numbers), run))

    def _write(self) -> None:
        """Write the runs that are ready, if there are any."""
        runs: list[Run] = []

        def select() -> tuple[Sequence[Outgoing], Mapping[TopicPartition, int]]:
            runs[:] = self._windows.take_ready()
            return self._outgoing(runs), {run.window.where: run.after for run in runs}

        with self._changed:
            if not self._windows.has_ready():
                return
        timer = self._record.stage_timer()
        written: list[Run] = []
        try:
            self._output.write(select, self._reading)
            written, self._held_up_by = runs, None
        except OutputAbortedError as error:
            if error.kind != self._held_up_by:
                self._held_up_by = error.kind
                _log.warning("%s: answers are not written for now: %s", self._stream, error)
            with self._changed:
                self._changed.wait(_ABORTED_S)
        finally:
            self._windows.finish(written)
        timer.end("durable")
        now_s = perf_counter()
        for run in written:
            # Each record counts: runs that are slow have the most of them.
            self._record.stages[TOTAL].add(now_s - run.read_s, run.count - run.skipped)
            self.dead_letters += len(run.letters)
            if self._samples is not None:
                self._samples.put(self._stream, self._created, run.samples)
        if self._output.commits:
            self._windows.committed({run.window.where: run.after for run in written})

    def _outgoing(self, runs: Sequence[Run]) -> list[Outgoing]:
        """Return the records to write: the replies of runs, then their dead letters."""
        letters = [letter for run in runs for letter in (*run.letters, *run.late_letters)]
        made = []
        for run in runs:
            if run.values:
                places = ReplyHeaders(*run.window.where, run.offsets)
                made.append(Outgoing(self._to.topic, run.values, run.keys, places))
        if letters:
            made.append(
                Outgoing(
                    self._to.dead,
                    [letter.value for letter in letters],
                    [letter.key for letter in letters],
                    [letter.headers for letter in letters],
                )
            )
        return made
