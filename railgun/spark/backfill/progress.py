"""Tells the progress of a backfill in Spark, while the driver waits."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark import SparkContext

Progress = Callable[[str, int, int], None]
"""(what is being done, pieces done, all pieces)."""

PHASES = ("reading and checking", "building tasks")
_PAUSE_S = 0.5


@contextmanager
def watched(context: SparkContext, group: str, told: Progress) -> Iterator[None]:
    """Tell the progress of a group's jobs, from a thread of its own, until the block is left."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_PAUSE_S):
            _tell(context, group, told)

    thread = threading.Thread(target=watch, name="railgun-backfill-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _tell(context: SparkContext, group: str, told: Progress) -> None:
    tracker = context.statusTracker()
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        stages = [] if info is None else sorted(info.stageIds)
        for place, stage_id in enumerate(stages):
            stage = tracker.getStageInfo(stage_id)
            if stage is not None and stage.numCompletedTasks < stage.numTasks:
                told(PHASES[min(place, 1)], stage.numCompletedTasks, stage.numTasks)
                return
