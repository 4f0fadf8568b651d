"""The units of one node: started, watched, started again when they die, stopped together."""

import fcntl
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from railgun.unit.parent import METRICS

# From a unit's death to its next start: doubled each time, and as at first after a while of health.
BACKOFF_S, BACKOFF_MAX_S, HEALTHY_S = 0.1, 10.0, 30.0
# A unit that does not come to its end within this time after it was asked is killed: its log has everything.
STOP_S = 60.0
_LOCK = "node.lock"
_PID_BYTES_MAX = 32
# What a node's folder may hold before a node has run there: what a backfill made ready, what file systems put there.
_OWN = {"backfill", "lost+found"}
NODE_READY = "ready"
"""What a node prints whenever all its units have caught up."""

_log = logging.getLogger("railgun.node")
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class NodeFolderError(Exception):
    """The node's folder cannot be used."""


class UnitProcess:
    """One unit. heartbeat: what it said last, empty until it has.  starts: how often it was started."""

    def __init__(self, index: int, command: Sequence[str]) -> None:
        self.index, self._command = index, list(command)
        self.heartbeat: dict[str, Any] = {}
        self.starts = 0
        self._backoff_s, self._due_s, self._started_s = BACKOFF_S, 0.0, 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._listener: threading.Thread | None = None
        self._asking, self._answered = threading.Lock(), threading.Event()
        self._metrics = ""

    @property
    def pid(self) -> int | None:
        """Of the process, while it runs."""
        return None if self._process is None else self._process.pid

    @property
    def is_ready(self) -> bool:
        """Whether it runs and has caught up."""
        return self._process is not None and bool(self.heartbeat.get("ready"))

    def watch(self) -> None:
        """Start it where it is due; notice where it has died."""
        if self._process is None:
            if time.monotonic() >= self._due_s:
                self._start()
        elif self._process.poll() is not None:
            self._died(self._process.returncode)

    def metrics(self, timeout_s: float) -> str:
        """What it says of itself, in Prometheus' format; nothing where it does not in time. From any thread."""
        process = self._process
        if process is None or process.stdin is None or not self.heartbeat:
            return ""
        with self._asking:
            self._answered.clear()
            try:
                os.write(process.stdin.fileno(), METRICS)
            except (OSError, ValueError):
                return ""
            return self._metrics if self._answered.wait(timeout_s) else ""

    def ask_to_stop(self) -> None:
        """Without waiting."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def end(self, deadline_s: float) -> int:
        """Wait for it until a time (monotonic), then kill it; its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        try:
            code = process.wait(max(0.0, deadline_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            _log.error("unit %d did not stop in time and is killed", self.index)
            process.kill()
            code = process.wait()
        self._let_go(process)
        return code

    def _start(self) -> None:
        self.heartbeat = {}
        self._started_s = time.monotonic()
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.starts += 1
        self._listener = threading.Thread(
            target=self._listen, args=[self._process], name=f"unit-{self.index}", daemon=True
        )
        self._listener.start()

    def _listen(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            try:
                message = _decode(line)
                if "metrics" in message:
                    self._metrics = str(message["metrics"])
                    self._answered.set()
                else:
                    self.heartbeat = message
            except msgspec.MsgspecError:
                _log.warning("unit %d said %r", self.index, line[:200])

    def _died(self, code: int) -> None:
        process, self._process = self._process, None
        assert process is not None
        self._let_go(process)
        now_s = time.monotonic()
        if now_s - self._started_s >= HEALTHY_S:
            self._backoff_s = BACKOFF_S
        _log.error("unit %d ended with %d; it is started again in %.1f s", self.index, code, self._backoff_s)
        self._due_s = now_s + self._backoff_s
        self._backoff_s = min(2 * self._backoff_s, BACKOFF_MAX_S)

    def _let_go(self, process: "subprocess.Popen[bytes]") -> None:
        self.heartbeat = {}
        if self._listener is not None:
            self._listener.join()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


class Supervisor:
    """The units of a node's folder, which it holds alone. Raises NodeFolderError where another one does."""

    def __init__(self, folder: Path, units: int, extra: Sequence[str] = ()) -> None:
        self._folder = folder
        self.units = [UnitProcess(index, _command(folder, index, units, extra)) for index in range(units)]

    @property
    def is_ready(self) -> bool:
        """Whether all units have caught up."""
        return all(unit.is_ready for unit in self.units)

    def run(
        self,
        stopped: threading.Event,
        on_ready: Callable[[], object] = lambda: None,
        interval_s: float = 0.05,
    ) -> bool:
        """Until asked to stop. Whether every unit ended well then. on_ready: called whenever all have caught up."""
        with _held(self._folder):
            was_ready = False
            try:
                while not stopped.wait(interval_s):
                    for unit in self.units:
                        unit.watch()
                    if self.is_ready and not was_ready:
                        _log.info("ready: %d unit%s", len(self.units), "" if len(self.units) == 1 else "s")
                        on_ready()
                    was_ready = self.is_ready
            finally:
                for unit in self.units:
                    unit.ask_to_stop()
                deadline_s = time.monotonic() + STOP_S
                codes = [unit.end(deadline_s) for unit in self.units]
        return not any(codes)


def _command(folder: Path, index: int, units: int, extra: Sequence[str]) -> list[str]:
    place = ["--node-folder", str(folder), "--index", str(index), "--units", str(units)]
    return [sys.executable, "-m", "railgun.unit", *place, *extra]


def _check_folder(folder: Path) -> None:
    """Make the folder, or see that it is a node's, or empty."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = {path.name for path in folder.iterdir()}
    except OSError as error:
        raise NodeFolderError(
            f"{folder}: no data folder can be made here: {error.strerror or error}; name a folder on a disk that can "
            "be written to"
        ) from error
    others = sorted(names - _OWN)
    if _LOCK not in names and others:
        raise NodeFolderError(
            f"{folder}: it holds {others[0]} and other things, but no data of a node; name an empty folder, or a new "
            "one"
        )


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    _check_folder(folder)
    handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(handle, _PID_BYTES_MAX, 0).decode("ascii", "replace") or "unknown"
            raise NodeFolderError(
                f"{folder}: another node, process {owner}, uses this folder; stop it, or give this one a folder of its "
                "own"
            ) from None
        with suppress(OSError):
            # For the message above alone: a full disk refuses it, and the node may start.
            os.truncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode("ascii"), 0)
        yield
    finally:
        os.close(handle)
