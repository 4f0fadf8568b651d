"""A successor: a task built with older history, which follows the log of the task that it will replace.

`TakeOver` has it opened and feeds it. No caller waits for it.
"""

import logging
from collections.abc import Callable, Iterable

from railgun.host.host_state import OF_A_SUCCESSOR
from railgun.host.task_log import TaskLog
from railgun.task.errors import LogGapError
from railgun.task.processor import TaskProcessor
from railgun.task.replies import discard_replies
from railgun.wire.records import Records

# A call of the engine waits while a step runs. So a step has as many records as the last step processed in this time.
# Times per record differ a hundredfold, because rows that are not in memory are read from the disk.
_STEP_S = 0.001
_STEP_LEAST_RECORDS, _STEP_MOST_RECORDS = 8, 256
# A step has this many times the records that have come since the last step. So the successor catches up at any rate
# of new records.
_GAIN = 2
_NEAR_RECORDS = 16
_READ_RECORDS, _READ_BYTES = 1_024, 1 << 20

_log = logging.getLogger("railgun.unit")


class Successor:
    """A successor and its position in the log. One thread uses it.

    task: the successor's task, opened from its folder.
    log: the log of the task that answers.
    end: returns the offset up to which it may follow.
    """

    def __init__(self, task: TaskProcessor, log: TaskLog, end: Callable[[], int]) -> None:
        self.task, self.log, self._end = task, log, end
        self._ahead: Records | None = None
        # Set in the first step. So the first step does not have to catch up with everything that came while the task
        # was opened.
        self._seen_end: int | None = None
        self._first = task.position
        self._brief_records = _STEP_LEAST_RECORDS

    @property
    def behind(self) -> int:
        """How many records of the log it has yet to process before the offset up to which it may follow."""
        return self._end() - self.task.position

    @property
    def is_filling(self) -> bool:
        """Whether it has a metric, added meanwhile, whose fill is not complete."""
        return self.task.fills.waiting

    @property
    def has_backlog(self) -> bool:
        """Whether more records have come since its last step than brief steps can keep up with."""
        return self._came > _STEP_MOST_RECORDS

    @property
    def is_near(self) -> bool:
        """Whether no fill is under way and the end of the log is so near that the successor can reach it at once or
        in one step.
        """
        return 0 <= self.behind <= max(_NEAR_RECORDS, _GAIN * self._came) and not self.is_filling

    def step(self) -> bool:
        """Process a brief step of records, or twice as many as have come since the last step. Returns whether there
        is more to do now.
        """
        # Fill metrics before going on with the log: a `warm` record would otherwise force the whole fill at once.
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
        """How many records have come since its last step."""
        return 0 if self._seen_end is None else self._end() - self._seen_end

    def _step_records(self) -> int:
        """Return how many records the next step processes."""
        came, self._seen_end = self._came, self._end()
        return max(self._brief_records, _GAIN * came)

    def _learn(self, records: int, took_s: float) -> None:
        """Adapt how many records a brief step has, from the time that the last step took.

        The number grows slowly, since the next records may be slower. A single slow step reduces it only for a
        moment.
        """
        if records:
            most = min(2 * self._brief_records, _STEP_MOST_RECORDS)
            self._brief_records = max(
                _STEP_LEAST_RECORDS, min(int(records * _STEP_S / max(took_s, 1e-6)), most)
            )

    def feed(self, records: Records, first_offset: int) -> None:
        """Process records that the other task has just processed. Records that are not the next ones are ignored."""
        if first_offset == self.task.position and not self.is_filling:
            self.task.process(records, first_offset, discard_replies)

    def catch_up(self) -> None:
        """Process all records of the log up to the offset up to which it may follow."""
        while self.behind > 0:
            self._process(_READ_RECORDS)

    def read_ahead(self) -> None:
        """Read the first records into memory before the thread that answers needs them, because the first read takes
        longest.
        """
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
        """Read the next records of the log. Raises LogGapError and TransportError."""
        position = self.task.position
        fetched = self.log.log.read(*self.log.where, position, _READ_RECORDS, _READ_BYTES)
        offsets = fetched.offsets
        if not len(offsets) or offsets[0] != position or offsets[-1] != position + len(offsets) - 1:
            raise LogGapError(str(self.log.where), f"offset {position} is next, and the log has a gap there")
        self._ahead, self._first = fetched.records, position


def close_all(successors: Iterable[Successor]) -> None:
    """Close successors. An error does not keep the others open, and is only logged."""
    for successor in successors:
        successor.log.release_second_reader()
        close_task(successor.task)


def close_task(task: TaskProcessor) -> None:
    """Close a task that does not answer. An error is only logged."""
    try:
        task.close()
    except OF_A_SUCCESSOR as error:
        _log.error("%s: what was beside it was not closed: %s", task.identity, error)
