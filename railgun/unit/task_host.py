"""One task in a unit: opened from its folder, fed from its topic, its replies sent, kept up between batches."""

import contextlib
import logging
import shutil
import time
from collections.abc import Callable
from concurrent.futures import Future
from time import perf_counter

import numpy as np

from railgun.catalog.changes import BeginDeepening, Warm, change_to_json
from railgun.messaging.errors import TransportError
from railgun.messaging.transport import Entry, Fetched, Transport
from railgun.state.errors import StoreError, StoreLockedError
from railgun.task.errors import HistoryMissingError, LogGapError
from railgun.task.history_manifest import verified_manifest
from railgun.task.processor import TaskProcessor
from railgun.task.replies import Replies
from railgun.task.settings import TaskSettings
from railgun.task.task_folder import current_folder, move_folder
from railgun.unit.faults import OF_ONE_TASK
from railgun.unit.host_deepening import HostDeepening
from railgun.unit.outstanding import Outstanding
from railgun.unit.place import Place
from railgun.unit.sending import DeadLetter, Sending
from railgun.unit.task_log import TaskLog
from railgun.wire.encode import Records, encode_control
from railgun.wire.msgpack import Status
from reservoir.errors import StorageFailedError

# Replies that are not acknowledged for so long are given up: the unit starts again.
ACKNOWLEDGED_S = 180.0

_log = logging.getLogger("railgun.unit")


class TaskHost:
    """failure: why the task was stopped; None while it runs.  used_s: see `TaskView`. One thread uses it."""

    def __init__(
        self,
        place: Place,
        transport: Transport,
        sending: Sending,
        settings: TaskSettings,
        used_s: Callable[[], float],
    ) -> None:
        self.place = place
        self.failure: str | None = None
        self.settings = settings
        self._transport, self._sending = transport, sending
        self._log = TaskLog(transport, place.where, used_s)
        self._outstanding = Outstanding(str(place.identity))
        self._task: TaskProcessor | None = None
        self._known_position = 0
        self._ready_at = 0
        self._warming: dict[Warm, Future[list[int]]] = {}
        self._deepening = HostDeepening(
            place, self._log, settings, self._await_replies, lambda: self.position
        )

    def open(self) -> bool:
        """Recover the task as its last checkpoint left it. False: another process holds its folder for now."""
        place = self.place
        place.folder.mkdir(parents=True, exist_ok=True)
        try:
            task = self._log.recover(
                current_folder(place.folder), place.identity, self.settings, self._await_replies
            )
        except StoreLockedError:
            return False
        except OF_ONE_TASK as error:
            self.failed(error)
            return True
        self._run(task)
        self._ready_at = self._transport.end_offset(*place.where)
        if task.position > self._ready_at:
            reason = f"its state is at offset {task.position}, its log ends at {self._ready_at}"
            self.failed(LogGapError(str(place.identity), reason))
        return True

    @property
    def is_running(self) -> bool:
        """Whether it takes records."""
        return self._task is not None

    @property
    def is_ready(self) -> bool:
        """Whether it has come to where its log ended when it was opened."""
        return self._task is not None and self._task.position >= self._ready_at

    @property
    def state(self) -> str:
        """failed, running, or recovering until it has come to where its log ended when it was opened."""
        return "failed" if self.failure else "running" if self.is_ready else "recovering"

    @property
    def lag(self) -> int:
        """Records of its log that it has not taken yet, as far as it knows."""
        return max(0, self._transport.known_end(*self.place.where) - self.position)

    @property
    def position(self) -> int:
        """The offset of the next record it wants."""
        return self._known_position if self._task is None else self._task.position

    @property
    def task(self) -> TaskProcessor:
        """Of one that is running."""
        assert self._task is not None
        return self._task

    def replied(self) -> int:
        """The offset before which everything is answered and acknowledged. Raises TransportError."""
        return self._outstanding.replied(self.position)

    def take(self, fetched: Fetched) -> None:
        """Process what has come, and send the replies. An error of this task alone stops it."""
        begun_s, now_ms = perf_counter(), time.time() * 1000
        try:
            self._check_whole(fetched)
            if len(fetched):
                first, records = self.position, Records(fetched.buffer, fetched.bounds)
                self.task.process(records, first, self._deliver)
                self._note(fetched, begun_s, now_ms)
                self._deepening.feed(records, first)
        except HistoryMissingError as error:
            if error.takes_over:
                self._take_over(error)
            else:
                self._take_history(error)
        except OF_ONE_TASK as error:
            self.failed(error)

    def work(self) -> bool:
        """A slice of what the task needs beside records. True: there is more to do now."""
        if self._task is None:
            return False
        try:
            more = self._task.work()
            if self._task.metrics.warming:
                self._warm(self._task)
            more = more and not _only_waits(self._task)
            return self._deepening.work(self._task, is_ready=self.is_ready) or more
        except OF_ONE_TASK as error:
            self.failed(error)
            return False

    def give_up_replies(self, at_s: float) -> None:
        """Wait for no acknowledgement any more from a time on (monotonic)."""
        self._outstanding.give_up(at_s)

    def checkpoint(self) -> None:
        """Take a checkpoint and wait for it, and for the replies it covers. Raises TransportError where they are not
        acknowledged: their records are processed again at the next start, from the last checkpoint on."""
        if self._task is None:
            return
        try:
            self._task.checkpoints.take()
        except TransportError:
            durable = self._task.checkpoints.durable_position
            _log.warning(
                "%s is not checkpointed, replies are not acknowledged: the next start processes %d records again, from "
                "offset %d on",
                self.place.identity,
                self.position - durable,
                durable,
            )
            raise

    def close(self) -> None:
        """Let the task go, without a checkpoint."""
        # First: a checkpoint of a task that is being let go may wait for replies.
        self._outstanding.give_up()
        self._deepening.close()
        task, self._task = self._task, None
        if task is not None:
            self._known_position = task.position
            task.close()
            with contextlib.suppress(TransportError):
                self._transport.release(*self.place.where)

    def failed(self, error: Exception) -> None:
        """Stop this task for an error of its own. Where the disk failed it is raised: the unit starts again."""
        if isinstance(error, StorageFailedError) or type(error) is StoreError:
            raise error
        self.failure = f"{type(error).__name__}: {error}"
        _log.error("%s is stopped: %s", self.place.identity, error)
        # Whatever else is wrong with it has no more to say.
        with contextlib.suppress(Exception):
            self.close()

    @property
    def following(self) -> dict[str, object] | None:
        """Of one that is deepened: how far what was built follows it."""
        return self._deepening.following

    def _run(self, task: TaskProcessor) -> None:
        self._task, self._known_position = task, task.position
        task.puts_aside = self._puts_aside

    def _puts_aside(self, change: BeginDeepening) -> None:
        self._deepening.put_aside(self.task, change)

    def _take_over(self, missing: HistoryMissingError) -> None:
        """The log says that from here on the task is the one that was built with older history."""
        before = self.task
        try:
            task = self._deepening.replacement(before, missing)
        except (*OF_ONE_TASK, OSError) as error:
            self.failed(error)
            return
        self._deepening.let_go(before)
        self._run(task)
        _log.info("%s goes on with history %s", self.place.identity, missing.history)

    def _take_history(self, missing: HistoryMissingError) -> None:
        """The log says that history lies before it: the folder made ready takes the place of the task's own, and the
        log is read again from its beginning. Cut off half-way, the next start comes here again."""
        place = self.place
        try:
            if not place.history.is_dir():
                raise missing
            manifest = verified_manifest(place.history, place.identity, place.key.created)
            if manifest.history != missing.history:
                raise missing
        except OF_ONE_TASK as error:
            self.failed(error)
            return
        self.close()
        try:
            shutil.rmtree(place.folder)
            move_folder(place.history, place.folder)
        except OSError as error:
            # A shared folder's, or a full disk's: as where the history is missing, the other tasks go on.
            self.failed(error)
            return
        self._outstanding = Outstanding(str(place.identity))
        self._warming.clear()
        _log.info("%s begins anew behind history %s", place.identity, missing.history)
        if not self.open():
            self.failed(missing)

    def _check_whole(self, fetched: Fetched) -> None:
        offsets, position = fetched.offsets, self.position
        if not len(offsets):
            reached = fetched.next_offset
        elif offsets[0] == position and offsets[-1] == position + len(offsets) - 1:
            return
        else:
            gap = np.flatnonzero(offsets != position + np.arange(len(offsets)))
            reached = int(offsets[gap[0]])
        if reached > position:
            reason = f"offset {position} is next, the log has nothing before {reached}"
            raise LogGapError(str(self.place.where), reason)

    def _note(self, fetched: Fetched, begun_s: float, now_ms: float) -> None:
        who = self.place.identity
        notes = self._sending.noted.stream(who.stream)
        notes.records[who.partitioner] += len(fetched)
        notes.batches.add(len(fetched))
        notes.stages["process"].add(perf_counter() - begun_s)
        if fetched.appended_ms:
            notes.stages["waiting"].add(max(0.0, now_ms - fetched.appended_ms) / 1000)

    def _deliver(self, replies: Replies) -> None:
        if replies.decoded.exceptions:
            self._bury(replies)
        stream = self.place.identity.stream
        self._sending.answer(self._outstanding, stream, replies.first_offset, self.task.encode(replies))

    def _bury(self, replies: Replies) -> None:
        decoded, task = replies.decoded, self.task
        letters: list[DeadLetter] = []
        bad = np.flatnonzero(decoded.status[: replies.n] != Status.OK)
        for row in bad.tolist():
            start, end = decoded.offsets[row : row + 2].tolist()
            record = decoded.buffer[start:end].tobytes()
            letters.append(DeadLetter(replies.first_offset + row, record, decoded.describe(row)))
        task.unreadable_records += len(letters)
        self._sending.bury(self._outstanding, self.place.identity.stream, self.place.where, letters)

    def _warm(self, task: TaskProcessor) -> None:
        """Write the `warm` records that are due, once each; the task meets them in its log."""
        for warm in task.ready_to_warm():
            written = self._warming.get(warm)
            if written is None or (written.done() and written.exception() is not None):
                record = encode_control(change_to_json(warm))
                self._warming[warm] = self._transport.submit([Entry(self.place.where, [record])])

    def _await_replies(self, before_offset: int) -> None:
        self._outstanding.wait(before_offset, ACKNOWLEDGED_S)


def _only_waits(task: TaskProcessor) -> bool:
    """Whether all that is left is a commit that another thread makes: a later round finds it done."""
    return task.checkpointer.is_committing and all(fill.full for fill in task.metrics.fills.values())
