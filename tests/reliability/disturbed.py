"""A task player whose log may hold unreadable records and whose files may fail."""

from pathlib import Path

import numpy as np

from railgun.task.processor import TaskIdentity, TaskProcessor
from railgun.task.recovery import open_task
from railgun.task.replies import Replies
from railgun.task.settings import TaskSettings
from reservoir.files import DiskFiles, Files
from tests.strategies.case import STREAM
from tests.task.player import LogWriter, TaskPlayer


class DisturbedPlayer(TaskPlayer):
    """`files`: what the next opening uses. `refused`: by offset, why a record has no answer."""

    def __init__(
        self, folder: Path, writer: LogWriter, settings: TaskSettings, files: Files | None = None
    ) -> None:
        self.files = files or DiskFiles()
        self.refused: dict[int, tuple[int, str]] = {}
        super().__init__(folder, writer, settings)

    def _open(self) -> TaskProcessor:
        identity = TaskIdentity(STREAM, self.writer.partitioner, 0, b"0123456789abcdef")
        return open_task(self.folder, identity, self.files, self._read, self.settings)

    def _deliver(self, found: Replies) -> None:
        """Unreadable records have no answer; the others go on as ever, in runs between them."""
        status = found.decoded.status[: found.n]
        for row in np.flatnonzero(status).tolist():
            self.refused[found.first_offset + row] = int(status[row]), found.decoded.describe(row)
        good = np.flatnonzero(status == 0).tolist()
        self._take(found, good)

    def _take(self, found: Replies, rows: list[int]) -> None:
        records = self.writer.records
        for row in rows:
            index = records[found.first_offset + row][0]
            assert index is not None, f"offset {found.first_offset + row} has an answer"
            self.take(index, found, row)
