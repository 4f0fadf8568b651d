"""Measures the bytes of events, state and log in a data folder, and the free space of its file system.

Engines, nodes and front-ends show them. It reads the sizes of files, and no content.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from railgun.telemetry.reading import DiskReading

_EVENTS = "reservoir"


def measure_disk(folder: Path, log: Path | None = None) -> DiskReading:
    """Measure the files in a folder. A file with several names counts once: snapshots and fetches link segments.

    Files that are created or deleted meanwhile may or may not be counted.
    log: the part of the folder that belongs to an embedded log.
    """
    events_bytes = state_bytes = log_bytes = 0
    for place, size_bytes in _files(folder):
        if log is not None and log in place.parents:
            log_bytes += size_bytes
        elif place.parent.name == _EVENTS:
            events_bytes += size_bytes
        else:
            state_bytes += size_bytes
    return DiskReading(events_bytes, state_bytes, log_bytes, shutil.disk_usage(folder).free)


def size_of(folder: Path) -> int:
    """Return the total bytes of all files in a folder. Files that are created or deleted meanwhile may or may not be
    counted.
    """
    return sum(size_bytes for _, size_bytes in _files(folder))


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    linked = set()
    for above, _, names in os.walk(folder):
        for name in names:
            place = Path(above, name)
            try:
                found = place.stat()
            except FileNotFoundError:
                continue
            if found.st_nlink > 1:
                if (found.st_dev, found.st_ino) in linked:
                    continue
                linked.add((found.st_dev, found.st_ino))
            yield place, found.st_size
