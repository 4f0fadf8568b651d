"""What lies on the disk below a folder of tasks, by kind."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from railgun.telemetry.reading import DiskReading

_EVENTS = "reservoir"


def read_disk(folder: Path, log: Path | None = None) -> DiskReading:
    """What lies in a folder. log: the part of it that is an embedded log's. Files that come and go meanwhile count or
    not."""
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
    """The bytes of all files below a folder. Files that come and go meanwhile count or not."""
    return sum(size_bytes for _, size_bytes in _files(folder))


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    for above, _, names in os.walk(folder):
        for name in names:
            place = Path(above, name)
            try:
                yield place, place.stat().st_size
            except FileNotFoundError:
                continue
