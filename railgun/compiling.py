"""Kernels compiled by a process of its own: the first start takes minutes for it, and shall end when it is asked to.

`python -m railgun.compiling` is that process. It ends when its standard input does, as when its parent was killed.
"""

import logging
import os
import signal
import subprocess
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from railgun.child_python import child_python

COMPILING = "kernels are being compiled, which takes a minute or a few, once"
_log = logging.getLogger("railgun.compiling")


class CompilingStoppedError(Exception):
    """The kernels were not compiled: somebody asked to stop it."""


class Compiling:
    """Compiles all kernels into the cache, once."""

    def __init__(self) -> None:
        # Reentrant: `stop` calls `_kill` while it holds the lock.
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def run(self) -> None:
        """Compile, and wait for that. An exception that comes in here, as by a signal, ends it too.

        Where it fails a warning says why: kernels are compiled when they are called then. Raises CompilingStoppedError.
        """
        # What the process would leave behind goes with the folder.
        with tempfile.TemporaryDirectory(prefix="railgun-compiling-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            try:
                with self._lock:
                    if not self._is_stopped:
                        self._process = _started(folder)
                if self._process is not None and not self._is_stopped:
                    # Its process group is its own until it is waited for.
                    os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
            finally:
                code = self._end()
            if self._is_stopped:
                raise CompilingStoppedError("it was asked to stop while kernels were compiled")
            if code:
                _log.warning(
                    "kernels could not be compiled beforehand, and are when they are called: %s",
                    _why(folder, code),
                )

    def stop(self) -> None:
        """End it, or have it not begin; nothing where it is over. From any thread."""
        with self._lock:
            self._is_stopped = True
            self._kill()

    def _end(self) -> int:
        """The exit code; 0 where it did not begin."""
        self._kill()
        if self._process is None:
            return 0
        if self._process.stdin is not None:
            self._process.stdin.close()
        with self._lock:
            # Nobody kills meanwhile what has its process id next.
            return self._process.wait()

    def _kill(self) -> None:
        """End what runs of it: processes that it has started may outlive it."""
        with self._lock:
            if self._process is not None and self._process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)


def _started(folder: Path) -> "subprocess.Popen[bytes]":
    with _said(folder).open("wb") as said:
        return subprocess.Popen(
            child_python("-m", "railgun.compiling"),
            env={**os.environ, "TMPDIR": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=said,
            # A group of its own: Ctrl-C goes to this process alone, which ends the whole group.
            start_new_session=True,
        )


def _said(folder: Path) -> Path:
    return folder / "stderr"


def _why(folder: Path, code: int) -> str:
    """Why the process failed: the last thing that it said, or its exit code."""
    lines = _said(folder).read_text(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"exit code {code}; {last}" if last else f"exit code {code}"


def _end_with_input() -> None:
    """End this process, and those that it has started, when standard input ends."""
    while os.read(0, 1024):
        pass
    os.killpg(os.getpgid(0), signal.SIGKILL)


def main() -> None:
    """Compile. As the leader of a process group, which `Compiling` makes it, end with standard input."""
    if os.getpgid(0) == os.getpid():
        threading.Thread(target=_end_with_input, daemon=True).start()
    from railgun.kernels import main as compile_kernels

    compile_kernels()


if __name__ == "__main__":
    main()
