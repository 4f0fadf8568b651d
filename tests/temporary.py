"""What tests write goes to memory where there is enough of it: a run writes and removes some hundred thousand files of
databases and brokers, and waits for a disk thousands of times."""

import os
import shutil
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ENOUGH_BYTES = 8 << 30
_NAME = "rt-"
"""Short: sockets have names of a hundred characters at most. The number of the run's process follows."""


def begin_run() -> None:
    """Called once, by the process that the run is. A folder that is asked for (TMPDIR) is used as it is."""
    if "TMPDIR" in os.environ or not _MEMORY.is_dir() or not os.access(_MEMORY, os.W_OK):
        return
    for left in _MEMORY.glob(f"{_NAME}*"):
        if not Path("/proc", left.name.removeprefix(_NAME)).exists():
            shutil.rmtree(left, ignore_errors=True)
    if shutil.disk_usage(_MEMORY).free >= _ENOUGH_BYTES and _available_bytes() >= _ENOUGH_BYTES:
        folder = _MEMORY / f"{_NAME}{os.getpid()}"
        folder.mkdir()
        os.environ["TMPDIR"] = str(folder)
        tempfile.tempdir = None


def end_run() -> None:
    """Called by the same process when all tests have run."""
    folder = _MEMORY / f"{_NAME}{os.getpid()}"
    if folder.exists():
        shutil.rmtree(folder, ignore_errors=True)


def _available_bytes() -> int:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
