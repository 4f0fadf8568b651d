"""Compiles kernels in a process of its own. The first start takes minutes for that, and must end when it is asked to.

`python -m railgun.compiling` is that process. It ends when its standard input does, for example if its parent is
killed.
"""

import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from railgun.child_python import child_python
from railgun.kernel_progress import LINKING, Told
from railgun.logs.setup import fields

COMPILING = "kernels are being compiled, which takes a minute or a few, once"
_EVERY_S = 5.0
_log = logging.getLogger("railgun.compiling")


class CompilingStoppedError(Exception):
    """The kernels were not compiled, because somebody asked to stop."""


class LoggedCompiling:
    """Logs how far compiling is, every few seconds."""

    def __init__(self) -> None:
        self._next_s = 0.0

    def at(self, done: int, of: int) -> None:
        """Log how many functions are compiled, unless something was logged a moment ago."""
        self._log("kernels are being compiled", fields(compiled=done, of=of))

    def waits(self, pid: int | None) -> None:
        """Log that another process is waited for, unless something was logged a moment ago."""
        self._log("another process compiles kernels, and is waited for", fields(pid=pid))

    def links(self) -> None:
        """Log that kernels are linked."""
        _log.info(LINKING)

    def _log(self, text: str, extra: dict[str, Any]) -> None:
        if (now_s := time.monotonic()) >= self._next_s:
            self._next_s = now_s + _EVERY_S
            _log.info(text, extra=extra)


class Compiling:
    """Compiles all kernels into the cache, once, by a child process.

    told: called in a thread with how far it is; without it that is logged.
    """

    def __init__(self, told: Told | None = None) -> None:
        self._told = LoggedCompiling() if told is None else told
        # It is reentrant, because `stop` calls `_kill` while it holds the lock.
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
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
                    self._reader = threading.Thread(
                        target=self._tell, args=(self._process.stdout,), daemon=True
                    )
                    self._reader.start()
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
            code = self._process.wait()
        if self._reader is not None:
            self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()
        return code

    def _tell(self, lines: IO[bytes]) -> None:
        """Pass on how far the process is, until it and those that it has started have ended."""
        for line in lines:
            match line.split():
                case [b"links"]:
                    self._told.links()
                case [b"waits", *pid]:
                    self._told.waits(int(pid[0]) if pid else None)
                case [done, of]:
                    self._told.at(int(done), int(of))

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
            stdout=subprocess.PIPE,
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
    from railgun.kernels import compile_all

    compile_all(_Written())


class _Written:
    """Tells the parent how far compiling is, by lines that `Compiling` reads."""

    def at(self, done: int, of: int) -> None:
        _write(f"{done} {of}")

    def waits(self, pid: int | None) -> None:
        _write("waits" if pid is None else f"waits {pid}")

    def links(self) -> None:
        _write("links")


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
