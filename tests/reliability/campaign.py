"""Seeded campaigns of one task that leave the task open, so that its state can be looked at afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from railgun.task.settings import TaskSettings
from tests.strategies.case import Case, replies
from tests.task.player import LogWriter, TaskPlayer, assert_reply


@contextmanager
def played(
    case: Case, folder: Path, settings: TaskSettings, *, crash: bool, batches: bool = True
) -> Iterator[TaskPlayer]:
    """Play a case and compare every answer with the oracle's; the task stays open meanwhile.

    crash: restarts lose what no checkpoint holds. batches False: no cuts and no restarts, the log in one go.
    """
    expected = replies(case)
    writer = LogWriter(case)
    player = TaskPlayer(folder, writer, settings)
    index = 0
    try:
        for batch in case.batches():
            if batches and batch.restart:
                player.crash() if crash else player.reopen()
            for step in batch.steps:
                writer.write(index, step)
                index += 1
            if batches:
                player.catch_up()
        player.catch_up()
        for at, answer in player.answers.items():
            assert_reply(expected[at], answer, writer.partitioner, f"step {at}")
        yield player
    finally:
        player.task.close()
