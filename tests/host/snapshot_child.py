"""A process that makes a snapshot, and is killed before it opens, makes, links or renames a file the n-th time.

Words: the folder of the task, that of the snapshot, n.
"""

import os
import signal
import sys
from pathlib import Path

from railgun.host.snapshot_making import SnapshotMaking
from reservoir.inline_executor import InlineExecutor
from tests.task.test_open_rows import SETTINGS, a_log

_CHANGES = frozenset(("open", "os.mkdir", "os.link", "os.rename", "os.remove"))


def main(folder: Path, to: Path, calls: int) -> None:
    executor, log, left = InlineExecutor(), a_log(1, 400), [calls]
    task = log.open(folder, SETTINGS, executor=executor)
    log.feed(task)
    task.checkpoints.take()
    making = SnapshotMaking(executor, 1)
    job = making.begin(to)

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if event in _CHANGES:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    making.step(task)
    sys.addaudithook(watch)
    executor.run_next()
    making.step(task)
    job.result()
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
