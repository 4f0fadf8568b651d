"""Makes snapshots (copies of the last checkpoint) of one host's task, one at a time, while the task continues.

`TaskHost` has one `SnapshotMaking`. A thread of its own links and copies the files.
"""

from concurrent.futures import Future
from pathlib import Path

from railgun.host.snapshot import snapshot_of
from railgun.task.errors import SnapshotError
from railgun.task.processor import TaskProcessor
from reservoir.executor import Executor, Job, Lane


class SnapshotMaking:
    """The snapshot that is being made, if any.

    The host's thread calls `begin` and `step`. Before the task is closed, or a checkpoint is awaited, `give_up` must be
    called.
    created: the place in the catalogue of the stream's first definition.
    """

    def __init__(self, executor: Executor, created: int) -> None:
        self._executor, self._created = executor, created
        self._asked: Future[None] | None = None
        self._to = Path()
        self._has_current = False
        self._is_given_up = False
        self._lane: Lane | None = None
        self._made: Job[None] | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether a snapshot was asked for, and its job has not ended."""
        return self._asked is not None

    def begin(self, to: Path) -> Job[None]:
        """Ask for a snapshot in a folder that does not exist yet. Raises SnapshotError if one is under way."""
        if self._asked is not None:
            raise SnapshotError(f"another snapshot is being made, in {self._to}")
        self._asked, self._to = Future(), to
        self._has_current = self._is_given_up = False
        return self._asked

    def step(self, task: TaskProcessor) -> None:
        """Begin the next part of the snapshot if it can begin by now, and note a part that has ended.

        Must be called between batches.
        """
        if self._asked is None:
            return
        if self._made is not None:
            if self._made.done():
                self._end(self._made.exception())
        elif not task.checkpointer.is_in_flight:
            self._link(task)

    def give_up(self) -> None:
        """End the snapshot that is being made, and wait until its lane has ended. Its job fails."""
        if self._asked is None:
            return
        self._is_given_up = True
        error: BaseException | None = SnapshotError(
            f"the snapshot in {self._to} is given up: the task is closed"
        )
        if self._made is not None:
            error = self._made.exception()
        self._end(error)

    def _link(self, task: TaskProcessor) -> None:
        """Have a lane put the last checkpoint into the folder, or begin a new one first if that one is outdated."""
        snapshot = None
        if self._has_current or not task.checkpoints.is_outdated:
            snapshot = snapshot_of(task, self._created)
        self._has_current = True
        if snapshot is None:
            task.checkpoints.begin()
            return
        to, making = self._to, snapshot
        # A lane of its own, for as long as this takes: a checkpoint or an opening must not wait for it.
        self._lane = self._executor.lane("snapshots")
        self._made = self._lane.submit(lambda: making.put_into(to, self._check))
        task.checkpoints.hold_for(self._made)

    def _check(self) -> None:
        if self._is_given_up:
            raise SnapshotError(f"the snapshot in {self._to} is given up: the task is closed")

    def _end(self, error: BaseException | None) -> None:
        asked, lane = self._asked, self._lane
        self._asked = self._made = self._lane = None
        if lane is not None:
            lane.close()
        assert asked is not None
        if error is None:
            asked.set_result(None)
        else:
            asked.set_exception(error)
