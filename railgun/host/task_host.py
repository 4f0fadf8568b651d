"""Hosts one copy of a task, for an engine or a unit: opens it from its folder, feeds it from its log, does its
background work, and replaces it.
"""

import contextlib
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from railgun.catalog.changes import BeginDeepening, Warm
from railgun.cluster.copies import LogPoint
from railgun.cluster.donors import Donors
from railgun.cluster.reports import Fetching
from railgun.history.durable_files import remove_rest
from railgun.host.append_times import AppendTimes
from railgun.host.deepening.accepted_events import AcceptedEventsExport
from railgun.host.deepening.built_task import Offered
from railgun.host.deepening.successor import close_task
from railgun.host.deepening.take_over import TakeOver
from railgun.host.fetched import folder_id
from railgun.host.fetcher import ALWAYS, FetchRule
from railgun.host.history import check_history, naming_damage, take_history
from railgun.host.host_state import HostState
from railgun.host.leader_epochs import LeaderEpochs
from railgun.host.missed_checkpoints import saying_what_is_missed
from railgun.host.place import Place
from railgun.host.recovery import recovered
from railgun.host.reply_sink import ReplySink, WarmWriter
from railgun.host.snapshot_making import SnapshotMaking
from railgun.host.source import DataSource
from railgun.host.start import StartProgress
from railgun.host.stored_meta import stored_meta
from railgun.host.task_log import TaskLog
from railgun.messaging.errors import TopicMissingError
from railgun.messaging.transport import Fetched
from railgun.task.errors import (
    HistoryMissingError,
    LogCutError,
    LogGapError,
    LogReplacedError,
    SnapshotError,
    StateLeftBehindError,
)
from railgun.task.processor import TaskProcessor
from railgun.task.replies import Replies
from railgun.task.settings import TaskSettings
from railgun.wire.records import Records
from reservoir.executor import Job, Lane

_ID_BYTES = 8
_log = logging.getLogger("railgun.unit")


class TaskHost:
    """Runs one copy of a task.

    Threads: one thread uses it. Another may run `open`, `change` or `close`; meanwhile the first one only reads the
    host's state.
    sink: sends the replies.  write_warm: writes `warm` records.
    offered: returns which successor is built for the task.  lane: runs long operations.
    copy: distinguishes the copies of one task that share a folder of built history.
    failure: why the task was stopped for an error of its own; None while it may run.
    lost: set if the task was stopped because its log does not have this point any more.
    replaced: set if the task was stopped because another topic, or none, has the name of its log's topic now: the id of
        the topic that its state was made of; empty if it is not known.
    left_behind: set if the task was stopped because its log does not continue this state.
    limit: None if this copy answers. Otherwise it is silent: it sends nothing, and must not be given records behind
        this point.
    awaits: the `warm` record that comes next, if the task waits until it has filled the metric.
    may_warm: the metrics for which it may write `warm` records; None allows all.
    fetching: how far the fetch of its data has come, while it is FETCHING; else None.
    folder_id: the id of the task's folder; empty before it was opened.
    source: decides where its data comes from.  rule: when that is another node.
    """

    def __init__(
        self,
        place: Place,
        log: TaskLog,
        sink: ReplySink,
        settings: TaskSettings,
        write_warm: WarmWriter,
        offered: Offered,
        lane: Lane,
        copy: str = "",
        rule: FetchRule = ALWAYS,
    ) -> None:
        self.place, self.log, self.settings, self.sink = place, log, settings, sink
        self.failure: str | None = None
        self.lost: LogPoint | None = None
        self.replaced: str | None = None
        self.left_behind: StateLeftBehindError | None = None
        self.limit: LogPoint | None = None
        self.awaits: Warm | None = None
        self.may_warm: Sequence[str] | None = None
        self.fetching: Fetching | None = None
        self.folder_id = ""
        self.source = DataSource(place, log, settings, rule)
        self._task: TaskProcessor | None = None
        self._state = HostState.CLOSED
        self._next: HistoryMissingError | None = None
        self._known_position = self._handed_over = self._ready_at = self._trimmed_at = 0
        self.export = AcceptedEventsExport(place, copy, lane)
        self._offered, self.lane, self._write_warm = offered, lane, write_warm
        self.take_over = self._make_take_over()
        self._epochs, self._appended = LeaderEpochs(0, -1), AppendTimes()
        self._known_durable, self._known_topic_id = (0, 0), ""
        self._snapshot = SnapshotMaking(log.environment.executor, place.key.created)

    # --- state -------------------------------------------------------------------------------------

    @property
    def state(self) -> HostState:
        """The state of the host."""
        if self._state is HostState.RECOVERING and self.position >= self._ready_at:
            self._state = HostState.ANSWERING
        return self._state

    @property
    def is_running(self) -> bool:
        """Whether the host takes records."""
        return self._state in (HostState.RECOVERING, HostState.ANSWERING)

    @property
    def is_filling(self) -> bool:
        """Whether the task can process no record before it has filled a metric."""
        return self.awaits is not None and self.is_running and not self.task.is_filled(self.awaits)

    @property
    def is_changing(self) -> bool:
        """Whether the task has come to a record that orders another task. `change` has to be called then."""
        return self._state is HostState.CHANGING

    @property
    def is_ready(self) -> bool:
        """Whether the task has processed its log up to where it ended at opening."""
        return self.state is HostState.ANSWERING

    @property
    def lag(self) -> int:
        """How many records of the log are still to be processed, as far as that is known without a request."""
        return max(0, self.log.known_end - self.position)

    @property
    def position(self) -> int:
        """The offset of the next record to be processed."""
        task = self._task
        return self._known_position if task is None else task.position

    @property
    def durable(self) -> tuple[int, int]:
        """The position of the last durable checkpoint, and when the record there was appended, in ms since 1970. 0: not
        known, or no record is there yet.
        """
        # Another thread may close the task, and set `_task` to None.
        task = self._task
        if task is not None:
            position = task.checkpoints.durable_position
            self._known_durable = position, self._appended.at(position)
        return self._known_durable

    @property
    def topic_id(self) -> str:
        """The id of the topic that the task's state is made of; empty if it is not known, or before it was opened."""
        task = self._task
        return self._known_topic_id if task is None else task.topic_id

    @property
    def task(self) -> TaskProcessor:
        """The task. It exists only while `is_running`."""
        assert self._task is not None
        return self._task

    @property
    def following(self) -> dict[str, object] | None:
        """A report on the successor, or on why there can be none; None if none is built."""
        if self.export.failure is not None:
            history, failure = self.export.failure
            return {"history": history, "failure": failure}
        return self.take_over.following if self.is_running else None

    def replied(self) -> int:
        """Return the offset before which all replies are acknowledged, or given up for good; also of a closed or failed
        task. Raises TransportError.
        """
        return self.sink.replied(self._handed_over)

    def epoch_before(self, offset: int) -> int:
        """Return the leader epoch of the record before an offset that was processed lately; -1 if it is not known."""
        return self._epochs.before(offset)

    # --- opening and closing -----------------------------------------------------------------------

    def open(self, donors: Donors | None = None, needed: int = 0, damage: str = "") -> None:
        """Recover the task from its last checkpoint. The host is FETCHING afterwards if data of another node is needed
        first; then `source.order` says of which node. donors, needed, damage: see `DataSource.open`.

        Raises StoreLockedError if another process holds its folder, TransportError, OSError, and what tasks raise.
        """
        self._state = HostState.OPENING
        try:
            self.place.check_folder()
            remove_rest(self.place.folder)
            # Ask this first, because the broker may be away: an open task would hold its folder meanwhile.
            self._ready_at = self._log_end()
            task = self.source.open(donors, self.sink.wait, needed, damage)
            if task is None:
                self._state = HostState.FETCHING
                return
            self._run(task)
        except BaseException:
            self._state = HostState.CLOSED
            raise
        self.fetching = None
        self._state = HostState.RECOVERING

    def _log_end(self) -> int:
        """Return where the log ends. Raises TransportError."""
        try:
            return self.log.end
        except TopicMissingError:
            # An operator who accepts another topic has to know which one is gone.
            meta = stored_meta(self.place.folder)
            self._known_topic_id = "" if meta is None else meta.topic_id
            raise

    def catch_up(self, threads: int, start: StartProgress) -> None:
        """Process the records that the log has now, without sending replies.

        A record of the log may replace the task by a successor, or by a task with history.
        threads: how many threads read the task's state.
        start: is told about the progress.
        Raises TransportError, and what tasks raise.
        """
        self._ready_at = self.log.end
        start.expect(self._ready_at - self.position)
        while self.position < self._ready_at:
            before = self.position
            try:
                self.log.catch_up(self.task, self._ready_at, threads, start)
            except HistoryMissingError as missing:
                self._go_on_with(missing, self.take_over.let_go)
            else:
                self._handed_over = self.position
                if self.position == before:
                    raise LogGapError(str(self.place.where), f"the log ends before offset {self._ready_at}")
        self._state = HostState.RECOVERING

    def change(self) -> None:
        """Go on as the task that the log orders, once `is_changing`. Reads and writes whole files, and much of the log.

        After a crash in the middle of it, the next start does it again.
        Raises TransportError, OSError, and what tasks raise. The host is closed then, and comes to the same record
        again when it is opened.
        """
        missing, self._next = self._next, None
        assert missing is not None
        # The host's lane runs this. A `close` may be queued there already: it would wait for ever for a job behind it.
        self._go_on_with(missing, close_task)
        # This comes last: from now on the thread that uses the host may give it records.
        self._state = HostState.RECOVERING

    def close(self) -> None:
        """Close the task without a checkpoint."""
        # This comes first, because a checkpoint of a task that is being closed may wait for replies.
        self.sink.give_up()
        self._state = HostState.CLOSING
        try:
            self.take_over.close()
            self._close_task()
        finally:
            self._state = HostState.CLOSED if self.failure is None else HostState.FAILED

    def fail(self, error: Exception, remedy: str = "", *, is_news: bool = True) -> None:
        """Stop the task for an error of its own.

        remedy: what the operator can do, besides what the error says.
        is_news: whether it is logged.
        """
        self.failure = f"{type(error).__name__}: {error}{remedy}"
        self.fetching = None
        if isinstance(error, LogCutError):
            self.lost = LogPoint(error.position, error.leader_epoch)
        elif isinstance(error, LogReplacedError):
            self.replaced = error.topic_id
        elif isinstance(error, StateLeftBehindError):
            self.left_behind = error
        if is_news:
            _log.error("%s is stopped: %s%s", self.place.identity, error, remedy)
        # The task is stopped already, so a further error does not matter.
        with contextlib.suppress(Exception):
            self.close()
        self._state = HostState.FAILED

    # --- records -----------------------------------------------------------------------------------

    def process(self, records: Records, deliver: Callable[[Replies], None]) -> None:
        """Process the next records of the log. Raises what tasks raise."""
        task = self.task
        task.process(records, task.position, deliver)
        self._handed_over = task.position

    def take(self, fetched: Fetched) -> None:
        """Process a batch that was read from the log, and send the replies. If the batch orders another task that is
        not ready yet, `is_changing` is true afterwards.

        Raises TransportError, and what tasks raise.
        """
        started_s = self.log.environment.now()
        self.log.check_gapless(fetched, self.position)
        if not len(fetched):
            return
        first, records = self.position, fetched.records
        self._epochs.note(first, fetched.leader_epoch)
        self._appended.note(
            first, fetched.next_offset, fetched.appended_ms, self.task.checkpoints.durable_position
        )
        try:
            self.process(records, self._deliver)
        except HistoryMissingError as missing:
            if missing.takes_over and self.take_over.is_ready_for(missing.history):
                self._go_on_with(missing, self.take_over.let_go)
            else:
                # `change` reads and writes whole files, so another thread calls it: other tasks must not wait.
                self._next, self._state = missing, HostState.CHANGING
            return
        self.task.leader_epoch = fetched.leader_epoch
        self.sink.note(fetched, self.log.environment.now() - started_s)
        # Feed the successor too: reading the log a second time only for it would cost more.
        self.take_over.feed(records, first)

    def work(self, *, brief: bool = False) -> bool:
        """Do a slice of the task's background work. Returns whether there is more to do now.

        brief: whether the slice must take well under a millisecond, because the caller comes again soon.
        """
        task = self.task
        more = task.work(brief=brief)
        if task.metrics.warming and self.limit is None:
            self._warm()
        self._trim()
        self._snapshot.step(task)
        self.export.forget_failure()
        self.take_over.look(task, is_ready=self.is_ready)
        return more and (brief or not _only_waits(task))

    def expedite(self) -> None:
        """Do a slice of the work that warming metrics wait for, including checkpoints."""
        task = self.task
        if task.fills.waiting:
            task.work()
        elif task.metrics.warming:
            if not task.ready_to_warm():
                # A finished fill makes a checkpoint due: it is taken a step at a time.
                task.work()
            self._warm()

    def checkpoint(self) -> None:
        """Take a checkpoint, and wait for it and for the replies that it covers.

        Raises TransportError if the replies are not acknowledged. The next start then processes their records again,
        from the last checkpoint on.
        """
        if self._task is None:
            return
        self._snapshot.give_up()
        with saying_what_is_missed(self._task):
            self._task.checkpoints.take()
        self._trim()

    def advance_checkpoint(self) -> bool:
        """Do a part of `checkpoint`, without waiting for replies or the disk. Returns whether all is done.

        Raises as `checkpoint` does.
        """
        self._snapshot.give_up()
        with saying_what_is_missed(self.task):
            return self.task.checkpoints.advance()

    def make_snapshot(self, to: Path) -> Job[None]:
        """Make a snapshot of the task in a folder that does not exist yet. `work` begins it, and notes when it is made.

        The job must be polled, not waited for. It fails with a SnapshotError if the snapshot cannot be made, or if the
        task is closed meanwhile; the folder is removed then. Raises SnapshotError if the task does not run, or if
        another snapshot of it is being made.
        """
        if not self.is_running:
            raise SnapshotError(f"{self.place.identity} is not open here")
        return self._snapshot.begin(to)

    @property
    def makes_snapshot(self) -> bool:
        """Whether a snapshot is being made."""
        return self._snapshot.is_under_way

    def _make_take_over(self) -> TakeOver:
        return TakeOver(
            self.place,
            self.log,
            self.settings,
            self.sink.wait,
            lambda: self.position,
            self._offered,
            self.lane,
        )

    def _run(self, task: TaskProcessor) -> None:
        self._task, self._known_position, self._handed_over = task, task.position, task.position
        self.folder_id = folder_id(self.place.folder, self.log.environment.randomness(_ID_BYTES).hex())
        self._trimmed_at = 0
        self._epochs, self._appended = LeaderEpochs(task.position, task.leader_epoch), AppendTimes()
        task.on_begin_deepening = self._begin_export

    def _close_task(self) -> None:
        self._snapshot.give_up()
        self._known_durable = self.durable
        task, self._task = self._task, None
        if task is not None:
            self._known_position, self._known_topic_id = task.position, task.topic_id
            task.close()
            self.log.release()

    def _begin_export(self, change: BeginDeepening) -> None:
        self.export.begin(self.task, change)

    def _go_on_with(self, missing: HistoryMissingError, let_go: Callable[[TaskProcessor], None]) -> None:
        """Go on as the task that the log orders. After an error the host is closed.

        let_go: closes a task that a successor has replaced.
        """
        assert self._task is not None
        self._snapshot.give_up()
        try:
            with naming_damage(missing):
                if missing.takes_over:
                    before = self._task
                    replacement = self.take_over.replacement(before, missing)
                    # Records that a gap of the log has swallowed are in no history either.
                    replacement.gap, replacement.begun = before.gap, before.begun
                    self._run(replacement)
                    let_go(before)
                    _log.info("%s goes on with history %s", self.place.identity, missing.history)
                else:
                    self._take_history(missing)
        except BaseException:
            with contextlib.suppress(Exception):
                self._close_to_begin_again()
            raise

    def _take_history(self, missing: HistoryMissingError) -> None:
        """Replace the task's folder by a copy of the built one, as the log orders, and read the log again from its
        beginning.
        """
        check_history(self.place, missing)
        self._close_to_begin_again()
        take_history(self.place, missing.history)
        # Ask this first, because the broker may be away: an open task would hold its folder meanwhile.
        self._ready_at = max(self._ready_at, self.log.end)
        self._run(recovered(self.place, self.log, self.settings, self.sink.wait))
        _log.info("%s begins anew behind history %s", self.place.identity, missing.history)

    def _close_to_begin_again(self) -> None:
        """Close the task and its successor. Replies under way still have to be acknowledged."""
        try:
            self.take_over.close()
            self._close_task()
        finally:
            self.take_over = self._make_take_over()
            self._state = HostState.CLOSED

    def _deliver(self, replies: Replies) -> None:
        if self.limit is None:
            self.sink.deliver(self.task, replies)
        self._handed_over = replies.first_offset + replies.n

    def _warm(self) -> None:
        """Write the `warm` records that are due. The task applies them when it reads them from its log."""
        allowed = self.may_warm
        due = [warm for warm in self.task.ready_to_warm() if allowed is None or warm.name in allowed]
        if due:
            self._write_warm(self.place, due)

    def _trim(self) -> None:
        """Trim the log as far as no recovery of the task can need it any more."""
        checkpoints = self.task.checkpoints
        if checkpoints.taken > self._trimmed_at:
            self._trimmed_at = checkpoints.taken
            self.log.trim(checkpoints.durable_log_start)


def _only_waits(task: TaskProcessor) -> bool:
    """Whether the only work left is a commit that another thread makes. A later round will find it done."""
    return task.checkpointer.is_committing and all(fill.full for fill in task.metrics.fills.values())
