"""What a bench does with its process and its machine: kernels, the page cache, signals, the load."""

import compileall
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from bench.children import TREE


def compile_all() -> None:
    """Compile the bytecode and the kernels of this tree, as an installed program has them.

    Else the first start would compile kernels for a minute or more.
    """
    subprocess.run([sys.executable, "-m", "railgun.kernels"], stdout=sys.stderr, check=True)
    compile_bytecode(TREE)


def compile_bytecode(tree: Path) -> None:
    """Compile the bytecode of a tree. Where the environment keeps Python from writing it, each start would do so."""
    for package in ("railgun", "reservoir", "frontend", "bench"):
        compileall.compile_dir(tree / package, quiet=1)


def drop_page_cache(folder: Path) -> None:
    """Drop the files of a folder from the page cache, so that they are read from the disk again."""
    os.sync()
    for place in folder.rglob("*"):
        if place.is_file():
            with place.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cpu_s(pid: int) -> float:
    """Return the processor time of a process and all its threads, ended ones too, in finer steps than /proc has.

    Raises OSError if the process is gone.
    """
    # Linux numbers the clock of a process by its id: clock_getcpuclockid(3), which Python lacks.
    return time.clock_gettime((~pid << 3) | 2)


_PARENT = os.getppid()


def end_in_order() -> None:
    """Have `finally` blocks run, which remove folders and stop children, when this process is told to end."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def orphaned() -> bool:
    """Whether the process that started this one has ended. A child that runs on its own must then end too."""
    return os.getppid() != _PARENT


def load() -> str:
    """Return the load of the machine in words."""
    one_minute, five_minutes, _ = os.getloadavg()
    return f"load {one_minute:.1f} (1 min), {five_minutes:.1f} (5 min) on {os.cpu_count()} cores"
