"""Starts a child process of a node, watches it, asks it for metrics, kills it if it hangs, and stops it.

The supervisor has one for each child.
"""

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from railgun.cluster.silence import UNIT_SILENT_S
from railgun.node.ending import STOP_S
from railgun.node.liveness import Liveness
from railgun.node.parent import METRICS
from railgun.wording import counted

# The pause between the death of a process and its next start: it doubles each time, up to a limit. After a while of
# health it starts at the first value again.
BACKOFF_S, BACKOFF_MAX_S, HEALTHY_S = 0.1, 10.0, 30.0
# A process that was killed ends within this time, unless it waits for a disk that does not answer.
REAP_S = 1.0

_log = logging.getLogger("railgun.node")
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class ChildProcess:
    """The process of a unit, the leader's process, or the transfer process. `watch` starts it again when it has died,
    and kills it when it hangs. No call waits for a killed process to end, except `end` for a moment.

    name: what it is called in the log; empty for a unit.
    again: words that are appended to its command once it has been ready.
    hung_after_s: a process that has sent no heartbeat for this long is killed; None: it sends them only now and then.
    heartbeat: its last heartbeat; empty before the first one.
    starts: how often it was started.
    why_ended: why it ended by itself the last time, in one line; empty if it never has.
    relay: is called with each line that the process addresses to another one, by a thread.
    """

    def __init__(
        self,
        index: int,
        command: Sequence[str],
        name: str = "",
        again: Sequence[str] = (),
        hung_after_s: float | None = None,
        relay: Callable[[bytes], object] = lambda line: None,
    ) -> None:
        self._relay = relay
        self.index, self._command, self._again = index, list(command), list(again)
        self._was_ready = False
        self._is_unit, self._name = not name, name or f"unit {index}"
        self._hung_after_s = hung_after_s
        self.heartbeat: dict[str, Any] = {}
        self._heartbeats, self._liveness = 0, Liveness()
        self._is_killed = self._is_missed = False
        self.starts = 0
        # How often it has ended since it was last well for a while.
        self._ends, self.why_ended = 0, ""
        self._backoff_s, self._due_s, self._started_s = BACKOFF_S, 0.0, 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._listener: threading.Thread | None = None
        self._asking, self._answered = threading.Lock(), threading.Event()
        # Held while a line is written. `_unwritten` is the rest of one for which the pipe had no room.
        self._telling, self._unwritten = threading.Lock(), b""
        self._metrics = ""

    @property
    def pid(self) -> int | None:
        """The id of the process; None while it does not run."""
        return None if self._process is None else self._process.pid

    @property
    def is_ready(self) -> bool:
        """Whether the process runs, is heard, and has caught up with its logs."""
        return self._process is not None and self.hang is None and bool(self.heartbeat.get("ready"))

    @property
    def hang(self) -> str | None:
        """What shows that the process hangs, as an operator is told; None if nothing does. Any thread may read it."""
        if self._is_killed:
            return f"{self._name} was killed and has not ended: its disk may not answer"
        if self._hung_after_s is None or not self._liveness.is_silent or self.heartbeat.get("stopping"):
            return None
        return f"{self._name} has said nothing for {self._liveness.silent_s:.0f} s"

    @property
    def ended(self) -> str | None:
        """How often the process has ended by itself, and why, while it is not ready; None if it has not."""
        if self.is_ready or not self._ends:
            return None
        return f"{self._name} ended {counted(self._ends, 'time')}, last: {self.why_ended}"

    @property
    def failed_here(self) -> list[str]:
        """The tasks whose copies have failed in this unit alone, as far as it knows: other nodes could answer them."""
        return list(self.heartbeat.get("failed_here", ()))

    def watch(self) -> bool:
        """Start the process if that is due, kill it if it hangs. Returns whether this call has noticed that it died.

        Called many times a second: the silence of a process counts only as far as it is.
        """
        if self.is_ready:
            self._was_ready = True
            self._ends = 0 if self._is_healthy else self._ends
        if self._process is None:
            if time.monotonic() >= self._due_s:
                self._start()
        elif self._process.poll() is not None:
            self._died(self._process.returncode)
            return True
        elif self._hung_after_s is not None and not self._is_killed:
            self._liveness.look(time.monotonic(), self._heartbeats)
            self._heed_silence(self._hung_after_s)
        return False

    def metrics(self, timeout_s: float) -> str:
        """Ask the unit for its metrics in Prometheus' format; empty if it does not answer in time, or hangs. Any thread
        may call this.
        """
        with self._asking:
            self._answered.clear()
            if not self.heartbeat or self.hang is not None or not self.tell(METRICS):
                return ""
            return self._metrics if self._answered.wait(timeout_s) else ""

    def tell(self, line: bytes) -> bool:
        """Write a line to the standard input of the process. Returns False if it was dropped, because the process has
        ended or does not read. Any thread may call this.
        """
        with self._telling:
            process = self._process
            if process is None or process.stdin is None:
                return False
            try:
                while self._unwritten:
                    self._unwritten = self._unwritten[os.write(process.stdin.fileno(), self._unwritten) :]
                self._unwritten = line[os.write(process.stdin.fileno(), line) :]
            except (OSError, ValueError):
                return False
            return True

    def ask_to_stop(self) -> None:
        """Ask the process to stop. Does not wait."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def end(self, deadline_s: float) -> int:
        """Wait for the process to end, and kill it at a deadline. Returns its exit code: 0 if it ended as it was asked.

        A process that does not end though it was killed is abandoned.
        deadline_s: in seconds of the monotonic clock.
        """
        process, self._process = self._process, None
        if process is None:
            return 0
        code = None if self._is_killed else _ended(process, max(0.0, deadline_s - time.monotonic()))
        if code is None:
            if not self._is_killed:
                _log.error("%s did not stop in time and is killed", self._name)
                process.kill()
            code = _ended(process, REAP_S)
        if code is None:
            _log.error(
                "%s was killed and does not end, and is left behind: its disk may not answer", self._name
            )
            return -signal.SIGKILL
        self._let_go(process)
        # SIGTERM ended it: it was asked before it could handle the signal, and had begun nothing.
        return 0 if code == -signal.SIGTERM else code

    def _start(self) -> None:
        self._forget()
        self._started_s = time.monotonic()
        command = [*self._command, *(self._again if self._was_ready else ())]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        # A process that has been halted does not read. The node must not wait for it.
        os.set_blocking(process.stdin.fileno(), False)
        with self._telling:
            self._process, self._unwritten = process, b""
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
                if "to" in heard:
                    self._relay(line)
                elif "metrics" in heard:
                    self._metrics = str(heard["metrics"])
                    self._answered.set()
                else:
                    self.heartbeat = heard
                    self._heartbeats += 1
            except msgspec.MsgspecError:
                _log.warning("%s said %r", self._name, line[:200])

    def _heed_silence(self, hung_after_s: float) -> None:
        """Kill the process if it has been silent for too long. A process that is stopping has `STOP_S`."""
        silent_s, is_stopping = self._liveness.silent_s, bool(self.heartbeat.get("stopping"))
        if silent_s >= (STOP_S if is_stopping else hung_after_s):
            assert self._process is not None
            _log.error("%s has said nothing for %.0f s and is killed", self._name, silent_s)
            self._is_killed = True
            self._process.kill()
        elif self._liveness.is_silent and not is_stopping and not self._is_missed:
            self._is_missed = True
            _log.warning(
                "%s has said nothing for %g s%s; after %g s it is killed",
                self._name,
                UNIT_SILENT_S,
                ", so the node is not ready" if self._is_unit else "",
                hung_after_s,
            )
        elif self._is_missed and not silent_s:
            self._is_missed = False
            _log.info("%s is heard again", self._name)

    def _died(self, code: int) -> None:
        process, self._process = self._process, None
        assert process is not None
        self._join()
        self._ends, self.why_ended = self._ends + 1, self._why(code)
        self._let_go(process)
        if self._is_healthy:
            self._backoff_s = BACKOFF_S
        _log.error("%s ended with %d; it is started again in %.1f s", self._name, code, self._backoff_s)
        self._due_s = time.monotonic() + self._backoff_s
        self._backoff_s = min(2 * self._backoff_s, BACKOFF_MAX_S)

    def _why(self, code: int) -> str:
        """Return why the process has ended: the error that it told, or how it ended. code: its exit code."""
        if self._is_killed:
            return "it hung and was killed"
        told = self.heartbeat.get("failure")
        if told:
            return str(told)
        return f"exit code {code}" if code >= 0 else f"killed by signal {-code}"

    @property
    def _is_healthy(self) -> bool:
        """Whether the process has been running for a while, or had when it ended just now."""
        return time.monotonic() - self._started_s >= HEALTHY_S

    def _join(self) -> None:
        """Wait until all that a process has said that has ended is taken in."""
        if self._listener is not None:
            self._listener.join()

    def _forget(self) -> None:
        """Forget what was heard of the process that has ended."""
        self.heartbeat = {}
        self._heartbeats, self._liveness = 0, Liveness()
        self._is_killed = self._is_missed = False

    def _let_go(self, process: "subprocess.Popen[bytes]") -> None:
        self._join()
        self._forget()
        # No thread may write to a pipe that has been closed: another file may have got its number.
        with self._telling:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


def _ended(process: "subprocess.Popen[bytes]", within_s: float) -> int | None:
    """Return the exit code of a process; None if it has not ended within some seconds."""
    try:
        return process.wait(within_s)
    except subprocess.TimeoutExpired:
        return None
