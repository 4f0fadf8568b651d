"""Processes to be killed, forked from one that has loaded everything: a start costs little, a kill -9 is a real one.

As a process of its own: the argument is a module whose `main(folder, number)` is the life of a child. A line with a
path, a folder and a number on its input starts one, whose output goes to the path; it says the child's process number,
and how the child has ended.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import Self

_ROOT = Path(__file__).resolve().parents[2]
_HUNG_S = 240.0


class Nursery:
    """Starts children of a module one after another, and kills each."""

    def __init__(self, module: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._pipe = Path(self._folder.name) / "said"
        os.mkfifo(self._pipe)
        command = [sys.executable, "-m", "tests.reliability.nursery", module]
        self._process = subprocess.Popen(
            command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()

    def killed(self, folder: Path, number: int, lines: int, after_s: float) -> list[str]:
        """Start a child, kill it some time after it has said so many lines; the whole lines of what it said."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(self._pipe), str(folder), number]) + "\n")
        self._process.stdin.flush()
        child = int(self._process.stdout.readline())
        guard = threading.Timer(_HUNG_S, os.kill, (child, signal.SIGKILL))
        guard.start()
        with self._pipe.open(encoding="utf-8") as output:
            said = [output.readline() for _ in range(lines)]
            time.sleep(after_s)
            os.kill(child, signal.SIGKILL)
            said += output.readlines()
        guard.cancel()
        ended = int(self._process.stdout.readline())
        assert ended == -signal.SIGKILL, f"the child ended by itself ({ended}); it prints why"
        return [line.rstrip("\n") for line in said if line.endswith("\n")]


def _live(module: str, pipe: str, folder: str, number: int) -> None:
    """The child's life; it does not return."""
    code = 1
    try:
        with open(os.devnull, encoding="utf-8") as nothing:
            os.dup2(nothing.fileno(), 0)
        output = os.open(pipe, os.O_WRONLY)
        os.dup2(output, 1)
        os.close(output)
        importlib.import_module(module).main(Path(folder), number)
        code = 0
    except BaseException:  # noqa: BLE001 - it is printed; whoever waits sees the code
        traceback.print_exc()
    finally:
        os._exit(code)


def _serve(module: str) -> None:
    importlib.import_module(module)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _live(module, *json.loads(line))
        _say(child)
        _say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _serve(sys.argv[1])
