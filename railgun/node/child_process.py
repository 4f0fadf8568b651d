"""Starts a child process of a node, watches it, asks it for metrics, and stops it."""

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from railgun.node.parent import METRICS

# The pause between the death of a process and its next start: it doubles each time, up to a limit. After a while of
# health it starts at the first value again.
BACKOFF_S, BACKOFF_MAX_S, HEALTHY_S = 0.1, 10.0, 30.0

_log = logging.getLogger("railgun.node")
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class ChildProcess:
    """The process of a unit, or the leader's process. `watch` starts it again when it has died.

    name: what it is called in the log.
    again: words that are appended to its command once it has been ready.
    heartbeat: its last heartbeat; empty before the first one.
    starts: how often it was started.
    """

    def __init__(self, index: int, command: Sequence[str], name: str = "", again: Sequence[str] = ()) -> None:
        self.index, self._command, self._again = index, list(command), list(again)
        self._was_ready = False
        self._name = name or f"unit {index}"
        self.heartbeat: dict[str, Any] = {}
        self.starts = 0
        self._backoff_s, self._due_s, self._started_s = BACKOFF_S, 0.0, 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._listener: threading.Thread | None = None
        self._asking, self._answered = threading.Lock(), threading.Event()
        self._metrics = ""

    @property
    def pid(self) -> int | None:
        """The id of the process; None while it does not run."""
        return None if self._process is None else self._process.pid

    @property
    def is_ready(self) -> bool:
        """Whether the process runs, and has caught up with its logs."""
        return self._process is not None and bool(self.heartbeat.get("ready"))

    @property
    def failed_here(self) -> list[str]:
        """The tasks whose copies have failed in this unit alone, as far as it knows: other nodes could answer them."""
        return list(self.heartbeat.get("failed_here", ()))

    def watch(self) -> bool:
        """Start the process if that is due. Returns whether this call has noticed that it died."""
        self._was_ready = self._was_ready or self.is_ready
        if self._process is None:
            if time.monotonic() >= self._due_s:
                self._start()
        elif self._process.poll() is not None:
            self._died(self._process.returncode)
            return True
        return False

    def metrics(self, timeout_s: float) -> str:
        """Ask the unit for its metrics in Prometheus' format; empty if it does not answer in time. Any thread may
        call this.
        """
        with self._asking:
            self._answered.clear()
            if not self.heartbeat or not self.tell(METRICS):
                return ""
            return self._metrics if self._answered.wait(timeout_s) else ""

    def tell(self, line: bytes) -> bool:
        """Write a line to the standard input of the process. Returns whether that was possible. Any thread may call
        this.
        """
        process = self._process
        if process is None or process.stdin is None:
            return False
        try:
            os.write(process.stdin.fileno(), line)
        except (OSError, ValueError):
            return False
        return True

    def ask_to_stop(self) -> None:
        """Ask the process to stop. Does not wait."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def end(self, deadline_s: float) -> int:
        """Wait for the process to end, and kill it at a deadline. Returns its exit code: 0 if it ended as it was asked.

        deadline_s: in seconds of the monotonic clock.
        """
        process, self._process = self._process, None
        if process is None:
            return 0
        try:
            code = process.wait(max(0.0, deadline_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            _log.error("%s did not stop in time and is killed", self._name)
            process.kill()
            code = process.wait()
        self._let_go(process)
        # SIGTERM ended it: it was asked before it could handle the signal, and had begun nothing.
        return 0 if code == -signal.SIGTERM else code

    def _start(self) -> None:
        self.heartbeat = {}
        self._started_s = time.monotonic()
        command = [*self._command, *(self._again if self._was_ready else ())]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        # A process that has been halted does not read. The node must not wait for it.
        os.set_blocking(self._process.stdin.fileno(), False)
        self.starts += 1
        self._listener = threading.Thread(
            target=self._listen, args=[self._process], name=f"unit-{self.index}", daemon=True
        )
        self._listener.start()

    def _listen(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            try:
                heard = _decode(line)
                if "metrics" in heard:
                    self._metrics = str(heard["metrics"])
                    self._answered.set()
                else:
                    self.heartbeat = heard
            except msgspec.MsgspecError:
                _log.warning("%s said %r", self._name, line[:200])

    def _died(self, code: int) -> None:
        process, self._process = self._process, None
        assert process is not None
        self._let_go(process)
        now_s = time.monotonic()
        if now_s - self._started_s >= HEALTHY_S:
            self._backoff_s = BACKOFF_S
        _log.error("%s ended with %d; it is started again in %.1f s", self._name, code, self._backoff_s)
        self._due_s = now_s + self._backoff_s
        self._backoff_s = min(2 * self._backoff_s, BACKOFF_MAX_S)

    def _let_go(self, process: "subprocess.Popen[bytes]") -> None:
        self.heartbeat = {}
        if self._listener is not None:
            self._listener.join()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
