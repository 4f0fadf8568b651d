"""How many processors this process has, in a container too."""

import math
import os
from contextlib import suppress
from pathlib import Path

# Control groups as a container sees its own, version 2 and 1.
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_QUOTA_1 = (Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us"))


def processors() -> int:
    """How many can be at work at once: what the machine has, less where affinity or a container's quota allows less."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(there, _quota(there)))


def units_of(setting: int) -> int:
    """Return how many units a node has. setting: `cluster.units`; 0 means one for each processor."""
    return setting or processors()


def _quota(there: int) -> int:
    """Processors' worth of time, rounded up; `there` without a limit."""
    for files in ((_QUOTA,), _QUOTA_1):
        with suppress(OSError, ValueError, ZeroDivisionError):
            quota, period = (float(word) for file in files for word in file.read_text().split())
            return math.ceil(quota / period) if quota > 0 else there
    return there
