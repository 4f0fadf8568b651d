"""Kernels compiled by a process of its own: the first start takes minutes for it, and shall end when it is asked to."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress


class CompilingLeftError(Exception):
    """The kernels were not compiled: somebody asked to leave it."""


class Compiling:
    """Compiles all kernels into the cache, once. is_quiet: the process says nothing on stderr."""

    def __init__(self, *, is_quiet: bool = False) -> None:
        self._stderr = subprocess.DEVNULL if is_quiet else None
        # A signal handler may come in wherever its own thread is.
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_left = False

    def run(self) -> None:
        """Compile, and wait for that. An exception that comes in here, as by a signal, ends it too.

        What cannot be compiled is told where it is called. Raises CompilingLeftError.
        """
        # What the process would leave behind goes with the folder.
        with tempfile.TemporaryDirectory(prefix="railgun-compiling-", ignore_cleanup_errors=True) as folder:
            try:
                with self._lock:
                    if not self._is_left:
                        self._process = _started(folder, self._stderr)
                if self._process is not None and not self._is_left:
                    self._process.wait()
            finally:
                self._end()
        if self._is_left:
            raise CompilingLeftError("it was asked to end while kernels were compiled")

    def leave(self) -> None:
        """End it, or have it not begin; nothing where it is over. From any thread, and from signal handlers."""
        with self._lock:
            self._is_left = True
            self._kill()

    def _end(self) -> None:
        self._kill()
        if self._process is not None:
            self._process.wait()

    def _kill(self) -> None:
        """With the processes that it has started."""
        with self._lock:
            if self._process is not None and self._process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)


def _started(folder: str, stderr: int | None) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "railgun.kernels"],
        env={**os.environ, "TMPDIR": folder},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        # A group of its own: Ctrl-C goes to this process alone, which ends the whole group.
        start_new_session=True,
    )
