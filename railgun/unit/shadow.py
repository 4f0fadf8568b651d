"""A task built with older history that follows the log of the one it is to take the place of. Nobody waits for it."""

from collections.abc import Callable

from railgun.task.errors import LogGapError
from railgun.task.processor import TaskProcessor
from railgun.task.replies import unanswered
from railgun.unit.task_log import TaskLog
from railgun.wire.encode import Records

# Of a step where the task that answers has little to do: whoever calls meanwhile waits for no more. One that is far
# behind takes more.
_STEP_RECORDS, _FAR_STEP_RECORDS = 32, 256
_GAIN, _STEPS_BEHIND = 2, 64
_READ_RECORDS, _READ_BYTES = 1_024, 1 << 20


class Shadow:
    """task: opened from its folder.  log: of the task that answers.  end: how far it may follow.  most: records of a
    step, whatever comes. One thread uses it.
    """

    def __init__(
        self, task: TaskProcessor, log: TaskLog, end: Callable[[], int], most: int = _READ_RECORDS
    ) -> None:
        self.task, self.log, self._end, self._most = task, log, end, most
        self._ahead: Records | None = None
        self._seen_end = end()
        self._first = task.position

    @property
    def behind(self) -> int:
        """Records of the log that it has not seen, as far as it may."""
        return self._end() - self.task.position

    @property
    def is_filling(self) -> bool:
        """Does it have a metric, added meanwhile, that is not full yet?"""
        return self.task.fills.waiting

    def step(self) -> bool:
        """A brief step. True: there is more to do now."""
        # Metrics fill before the log goes on: a `warm` record would have the whole fill done at once.
        until = self.task.position + min(self._step_records(), self.behind)
        while self.task.position < until and not self.is_filling:
            self._process(until - self.task.position)
        return self.task.work(brief=True) or self.behind > 0

    def _step_records(self) -> int:
        """Of the next step: twice what has come since the last one, else it would fall behind; more where it is far."""
        end = self._end()
        came, self._seen_end = end - self._seen_end, end
        far = min(self.behind // _STEPS_BEHIND, _FAR_STEP_RECORDS)
        return min(self._most, max(_STEP_RECORDS, _GAIN * came, far))

    def feed(self, records: Records, first_offset: int) -> None:
        """Records that the other task has just processed; passed over where they are not the next."""
        if first_offset == self.task.position and not self.is_filling:
            self.task.process(records, first_offset, unanswered)

    def catch_up(self) -> None:
        """Process all that the log has, as far as it may."""
        while self.behind > 0:
            self._process(_READ_RECORDS)

    def _process(self, at_most: int) -> None:
        position = self.task.position
        if self._ahead is None or position >= self._first + len(self._ahead):
            if self.behind <= 0:
                return
            fetched = self.log.log.read(*self.log.where, position, _READ_RECORDS, _READ_BYTES)
            offsets = fetched.offsets
            if not len(offsets) or offsets[0] != position or offsets[-1] != position + len(offsets) - 1:
                raise LogGapError(
                    str(self.log.where), f"offset {position} is next, and the log has a gap there"
                )
            self._ahead, self._first = Records(fetched.buffer, fetched.bounds), position
        at_most = min(at_most, self.behind)
        done = position - self._first
        records = self._ahead.part(done, min(len(self._ahead), done + at_most))
        self.task.process(records, position, unanswered)
