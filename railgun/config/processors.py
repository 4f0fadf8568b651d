"""Counts the processors that this process may use, in a container too."""

import math
import os
from contextlib import suppress
from pathlib import Path

# The files of a control group as a container sees its own, in version 2 and 1.
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_QUOTA_1 = (Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us"))


def processors() -> int:
    """Return how many processors can be used at once: the machine's, or fewer by affinity or a container's quota."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(there, _quota(there)))


def units_of(setting: int) -> int:
    """Return how many units a node has. setting: `cluster.units`; 0 means one for each processor."""
    return setting or processors()


def _quota(there: int) -> int:
    """Return the container's quota as a number of processors, rounded up; `there` if there is no quota."""
    for files in ((_QUOTA,), _QUOTA_1):
        with suppress(OSError, ValueError, ZeroDivisionError):
            quota, period = (float(word) for file in files for word in file.read_text().split())
            return math.ceil(quota / period) if quota > 0 else there
    return there
