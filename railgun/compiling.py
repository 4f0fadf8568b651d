"""Compiles kernels in a process of its own. The first start takes minutes for that, and must end when it is asked to.

`python -m railgun.compiling` is that process. It ends when its standard input does, for example if its parent is
killed.
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
    """The kernels were not compiled, because somebody asked to stop."""


class Compiling:
    """Compiles all kernels into the cache, once, by a child process."""

    def __init__(self) -> None:
        # It is reentrant, because `stop` calls `_kill` while it holds the lock.
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def run(self) -> None:
        """Compile, and wait for the end.

        An exception that comes meanwhile, such as one of a signal, ends the compiling too.

        If compiling fails, a warning says why; kernels are then compiled when they are called. Raises
        CompilingStoppedError.
        """
        # Files that the process leaves behind go with the folder.
        with tempfile.TemporaryDirectory(prefix="railgun-compiling-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            try:
                with self._lock:
                    if not self._is_stopped:
                        self._process = _started(folder)
                if self._process is not None and not self._is_stopped:
                    # Nobody else can get the number of its process group before it is waited for.
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
        """End the compiling, or keep it from beginning. Does nothing if it is over. Any thread may call this."""
        with self._lock:
            self._is_stopped = True
            self._kill()

    def _end(self) -> int:
        """End the process. Returns its exit code; 0 if it did not begin."""
        self._kill()
        if self._process is None:
            return 0
        if self._process.stdin is not None:
            self._process.stdin.close()
        with self._lock:
            # Under the lock, nobody can kill a process that gets this number next.
            return self._process.wait()

    def _kill(self) -> None:
        """Kill the process and those that it has started, which may outlive it."""
        with self._lock:
            if self._process is not None and self._process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)


def _started(folder: Path) -> "subprocess.Popen[bytes]":
    """Start the process. Its temporary files, and what it writes to standard error, go into the folder."""
    with _said(folder).open("wb") as said:
        return subprocess.Popen(
            child_python("-m", "railgun.compiling"),
            env={**os.environ, "TMPDIR": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=said,
            # It has a group of its own: Ctrl-C goes to this process alone, which ends the whole group.
            start_new_session=True,
        )


def _said(folder: Path) -> Path:
    """Return the file with what the process has written to standard error."""
    return folder / "stderr"


def _why(folder: Path, code: int) -> str:
    """Return why the process failed: the last line that it wrote, or its exit code."""
    lines = _said(folder).read_text(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"exit code {code}; {last}" if last else f"exit code {code}"


def _end_with_input() -> None:
    """End this process, and those that it has started, when standard input ends."""
    while os.read(0, 1024):
        pass
    os.killpg(os.getpgid(0), signal.SIGKILL)


def main() -> None:
    """Compile. If `Compiling` made this the leader of a process group, end with standard input."""
    if os.getpgid(0) == os.getpid():
        threading.Thread(target=_end_with_input, daemon=True).start()
    from railgun.kernels import main as compile_kernels

    compile_kernels()


if __name__ == "__main__":
    main()
