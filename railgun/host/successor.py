"""A task built with older history that follows the log of the one it is to take the place of. Nobody waits for it."""

import logging
from collections.abc import Callable, Iterable

from railgun.host.host_state import OF_A_SUCCESSOR
from railgun.host.task_log import TaskLog
from railgun.task.errors import LogGapError
from railgun.task.processor import TaskProcessor
from railgun.task.replies import discard_replies
from railgun.wire.records import Records

# Whoever calls meanwhile waits for a step: it takes as many records as the last one did in this time. How long one
# takes differs a hundredfold: rows that the task has not met yet are read from the disk.
_STEP_S = 0.001
_STEP_LEAST_RECORDS, _STEP_MOST_RECORDS = 8, 256
# Of what has come since its last step a step takes so many times as much: it gains on what comes, whatever comes.
_GAIN = 2
_NEAR_RECORDS = 16
_READ_RECORDS, _READ_BYTES = 1_024, 1 << 20

_log = logging.getLogger("railgun.unit")


class Successor:
    """task: opened from its folder.  log: of the task that answers.  end: how far it may follow. One thread uses it."""

    def __init__(self, task: TaskProcessor, log: TaskLog, end: Callable[[], int]) -> None:
        self.task, self.log, self._end = task, log, end
        self._ahead: Records | None = None
        # Known from the first step on: what came while it was opened is not to be made good in one step.
        self._seen_end: int | None = None
        self._first = task.position
        self._brief_records = _STEP_LEAST_RECORDS

    @property
    def behind(self) -> int:
        """Records of the log that it has not seen, as far as it may."""
        return self._end() - self.task.position

    @property
    def is_filling(self) -> bool:
        """Does it have a metric, added meanwhile, that is not full yet?"""
        return self.task.fills.waiting

    @property
    def has_backlog(self) -> bool:
        """Has so much come since its last step that small ones would not keep up with it?"""
        return self._came > _STEP_MOST_RECORDS

    @property
    def is_near(self) -> bool:
        """Can it be where the log ends in a moment, or in a step of the size that what comes asks for?"""
        return 0 <= self.behind <= max(_NEAR_RECORDS, _GAIN * self._came) and not self.is_filling

    def step(self) -> bool:
        """A brief step, or twice as many records as have come since the last one. True: there is more to do now."""
        # Metrics fill before the log goes on: a `warm` record would have the whole fill done at once.
        first, begun_s = self.task.position, self.task.now()
        until = first + min(self._step_records(), self.behind)
        while self.task.position < until and not self.is_filling:
            self._process(until - self.task.position)
            if self.task.position < until:
                self.task.work(brief=True)
        self._learn(self.task.position - first, self.task.now() - begun_s)
        return self.task.work(brief=True) or self.behind > 0

    @property
    def _came(self) -> int:
        """Records since its last step."""
        return 0 if self._seen_end is None else self._end() - self._seen_end

    def _step_records(self) -> int:
        """Of the next step."""
        came, self._seen_end = self._came, self._end()
        return max(self._brief_records, _GAIN * came)

    def _learn(self, records: int, took_s: float) -> None:
        """How many are brief. Slowly up: the next ones may be dearer. One that was held up counts for a moment only."""
        if records:
            most = min(2 * self._brief_records, _STEP_MOST_RECORDS)
            self._brief_records = max(
                _STEP_LEAST_RECORDS, min(int(records * _STEP_S / max(took_s, 1e-6)), most)
            )

    def feed(self, records: Records, first_offset: int) -> None:
        """Records that the other task has just processed; passed over where they are not the next."""
        if first_offset == self.task.position and not self.is_filling:
            self.task.process(records, first_offset, discard_replies)

    def catch_up(self) -> None:
        """Process all that the log has, as far as it may."""
        while self.behind > 0:
            self._process(_READ_RECORDS)

    def read_ahead(self) -> None:
        """Have what comes first at hand, before the thread that answers wants it: a first read takes longest."""
        if self.behind > 0:
            self._read()

    def _process(self, at_most: int) -> None:
        position = self.task.position
        if self._ahead is None or position >= self._first + len(self._ahead):
            if self.behind <= 0:
                return
            self._read()
        assert self._ahead is not None
        at_most = min(at_most, self.behind)
        done = position - self._first
        records = self._ahead.part(done, min(len(self._ahead), done + at_most))
        self.task.process(records, position, discard_replies)

    def _read(self) -> None:
        """The next records of the log. Raises LogGapError, TransportError."""
        position = self.task.position
        fetched = self.log.log.read(*self.log.where, position, _READ_RECORDS, _READ_BYTES)
        offsets = fetched.offsets
        if not len(offsets) or offsets[0] != position or offsets[-1] != position + len(offsets) - 1:
            raise LogGapError(str(self.log.where), f"offset {position} is next, and the log has a gap there")
        self._ahead, self._first = fetched.records, position


def close_all(successors: Iterable[Successor]) -> None:
    """Let their tasks go. One that cannot be closed keeps no other open, and nobody waits for it."""
    for successor in successors:
        successor.log.release_beside()
        close_task(successor.task)


def close_task(task: TaskProcessor) -> None:
    """Let one go that answers nobody: where it cannot be closed, nobody has to know."""
    try:
        task.close()
    except OF_A_SUCCESSOR as error:
        _log.error("%s: what was beside it was not closed: %s", task.identity, error)
