"""How many files tasks keep open, and whether so many fit in the limit of this process."""

import os
import resource
from pathlib import Path

from railgun.engine.errors import OpenFilesError

# A task without events has 8 open (its lock and mark, its folder and RocksDB's own); with events it has its newest
# segment and some tables as well.
EMPTY_TASK_FILES, TASK_FILES = 8, 12
# The log, the program's own, connections.
_OTHER_FILES = 128

_OPEN = Path("/proc/self/fd")


def check_new_tasks(place: str, existing: int, new: int) -> None:
    """Raise OpenFilesError where so many more tasks do not fit, also when the folder is opened again."""
    needed = max(_OTHER_FILES + TASK_FILES * existing, _open_files()) + TASK_FILES * new
    _check(f"{place}: its {new} tasks", needed, TASK_FILES)


def check_opening(place: str, tasks: int) -> None:
    """Raise OpenFilesError where the tasks of a folder cannot all be opened."""
    _check(f"{place}: its {tasks} tasks", _open_files() + EMPTY_TASK_FILES * tasks, EMPTY_TASK_FILES)


def _check(what: str, needed: int, of_each: int) -> None:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit != resource.RLIM_INFINITY and needed > limit:
        raise OpenFilesError(
            f"{what} need about {of_each} open files each, {needed} with all others; the limit is {limit}: raise it "
            "(ulimit -n), or have fewer partitions"
        )


def _open_files() -> int:
    return len(os.listdir(_OPEN)) if _OPEN.is_dir() else 0
