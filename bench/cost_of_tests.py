"""What tests cost in processor time, folder by folder.

    python -m bench.cost_of_tests [PATH ...]

Each path is run by a pytest of its own, in one process (`-n 0`); without paths each folder of `tests/` is. Counted
are the user and system seconds of that pytest and of all that it started: servers, units, brokers, Spark's Java.
Prints a row of a table for each path. 0: all tests passed; 1: some did not.
"""

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

_TESTS = Path(__file__).resolve().parent.parent / "tests"
# prctl(2): a process that outlives its parent becomes this process's child, so its time is counted here at its end.
_SET_CHILD_SUBREAPER = 36
_PATIENCE_S = 60.0
# The exit code of pytest if no test was selected.
_NO_TESTS = 5


def main(paths: list[str]) -> int:
    """Run the tests of each path, and print their cost."""
    chosen = paths or [f"tests/{each.name}" for each in sorted(_TESTS.iterdir()) if _has_tests(each)]
    ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    print("| tests | processor s | s | outcome |\n| --- | --- | --- | --- |")
    failed = False
    for path in chosen:
        began_s, before_s = time.monotonic(), _children_s()
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", path]
        done = subprocess.run(command, cwd=_TESTS.parent, stdout=subprocess.PIPE, text=True, check=False)
        took_s = time.monotonic() - began_s
        _await_children()
        failed |= done.returncode not in (0, _NO_TESTS)
        *_, outcome = done.stdout.strip().splitlines() or [""]
        print(f"| `{path}` | {_children_s() - before_s:,.0f} | {took_s:,.0f} | {outcome} |", flush=True)
    return int(failed)


def _has_tests(place: Path) -> bool:
    return place.is_dir() and any(place.rglob("test_*.py"))


def _children_s() -> float:
    """Return the processor time of all descendants of this process that have ended, in seconds."""
    spent = os.times()
    return spent.children_user + spent.children_system


def _await_children() -> None:
    """Wait for processes that outlived their pytest: a broker that was asked to stop, and its watching process."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline_s:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.1)
        except ChildProcessError:
            return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
