"""A task built with older history that follows the log of the one it is to take the place of. Nobody waits for it."""

from railgun.task.processor import TaskProcessor
from railgun.task.replies import unanswered
from railgun.unit.task_log import TaskLog
from railgun.wire.encode import Records

# Of a step: whoever calls meanwhile waits for no more.
_STEP_RECORDS = 32
_READ_RECORDS, _READ_BYTES = 1_024, 1 << 20


class Shadow:
    """task: opened from its folder.  log: of the task that answers. One thread uses it."""

    def __init__(self, partitioner: str, task: TaskProcessor, log: TaskLog) -> None:
        self.partitioner, self.task, self.log = partitioner, task, log
        self._ahead: Records | None = None
        self._first = task.position

    @property
    def behind(self) -> int:
        """Records of the log that it has not seen."""
        return self.log.log.end_offset(*self.log.where) - self.task.position

    @property
    def is_filling(self) -> bool:
        """Does it have a metric, added meanwhile, that is not full yet?"""
        return self.task.fills.waiting

    def step(self) -> bool:
        """A brief step. True: there is more to do now."""
        # Metrics fill before the log goes on: a `warm` record would have the whole fill done at once.
        if not self.is_filling:
            self._process(_STEP_RECORDS)
        return self.task.work(brief=True) or self.behind > 0

    def catch_up(self) -> None:
        """Process all that the log has."""
        while self.behind > 0:
            self._process(_READ_RECORDS)

    def _process(self, at_most: int) -> None:
        position = self.task.position
        if self._ahead is None or position >= self._first + len(self._ahead):
            if self.behind <= 0:
                return
            fetched = self.log.log.read(*self.log.where, position, _READ_RECORDS, _READ_BYTES)
            self._ahead, self._first = Records(fetched.buffer, fetched.bounds), position
        done = position - self._first
        records = self._ahead.part(done, min(len(self._ahead), done + at_most))
        self.task.process(records, position, unanswered)
