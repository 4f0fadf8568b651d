"""Supervises the units of one node: starts them, restarts those that die, and stops them together."""

import fcntl
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from railgun.host.data_folder import TASKS
from railgun.node.identity import AUTO, IDENTITY, node_identity
from railgun.node.parent import METRICS, UnitEnded
from railgun.private_folder import exposure, make_private
from railgun.wording import counted, listed

# The pause between a unit's death and its next start: it doubles each time, up to a limit. After a while of health it
# starts at the first value again.
BACKOFF_S, BACKOFF_MAX_S, HEALTHY_S = 0.1, 10.0, 30.0
# A unit that has not ended this long after it was asked to stop is killed. Nothing is lost, as its log has
# everything.
STOP_S = 60.0
_LOCK = "node.lock"
_PID_BYTES_MAX = 32
# A node's folder may hold these before a node has run there: what a backfill has built, and what file systems put
# there.
_OWN = {"backfill", "lost+found", IDENTITY}
AGAIN = "--again"
"""Tells the leader's process that its node runs already."""
NODE_READY = "ready"
"""What a node prints once all its units have caught up, and again where one was started again."""
NODE_NOT_READY = "not ready: "
"""Begins what a node prints instead where copies have failed, and copies on other nodes could answer."""

_log = logging.getLogger("railgun.node")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class NodeFolderError(Exception):
    """The node's folder cannot be used."""


class NodeRefusedError(Exception):
    """The node may not take part in the cluster."""


class UnitProcess:
    """The process of one unit, or of what else a node runs.

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
        """Whether it runs, and has caught up with its logs."""
        return self._process is not None and bool(self.heartbeat.get("ready"))

    @property
    def failed_here(self) -> list[str]:
        """The tasks whose copies have failed in this unit alone, as far as it knows: other nodes could answer them."""
        return list(self.heartbeat.get("failed_here", ()))

    def watch(self) -> bool:
        """Start the process if that is due. Returns whether it is noticed just now that it has died."""
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
        # It was asked before it could listen, and had begun nothing.
        return 0 if code == -signal.SIGTERM else code

    def _start(self) -> None:
        self.heartbeat = {}
        self._started_s = time.monotonic()
        command = [*self._command, *(self._again if self._was_ready else ())]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        # One that stands still does not read: the node goes on all the same.
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


class Supervisor:
    """Supervises the units of a node's folder, which it locks, and the process that takes part in the group of nodes.

    units: the command of each unit.
    name: `cluster.node_name`.
    leader: the command of that process; empty if there is none. AGAIN is appended when it is started again.
    Raises NodeFolderError if another node has locked the folder, IdentityError, and NodeRefusedError.
    """

    def __init__(
        self,
        folder: Path,
        units: Sequence[Sequence[str]],
        *,
        name: str = AUTO,
        leader: Sequence[str] = (),
    ) -> None:
        self._folder, self._name = folder, name
        self.units = [UnitProcess(index, command) for index, command in enumerate(units)]
        self._others = [UnitProcess(len(units), leader, "the leader's process", [AGAIN])] if leader else []

    @property
    def leader(self) -> UnitProcess | None:
        """The process that takes part in the group of nodes."""
        return self._others[0] if self._others else None

    @property
    def has_caught_up(self) -> bool:
        """Whether all units have caught up with their logs, but for copies that have failed."""
        return all(unit.is_ready for unit in self.units)

    @property
    def shortfall(self) -> str | None:
        """Say which copies have failed here that other nodes have: if those were stopped, nobody could answer. None if
        there are none.
        """
        failed = sorted(task for unit in self.units for task in unit.failed_here)
        if not failed:
            return None
        return f"{NODE_NOT_READY}{listed(failed)}: failed here, and another node has a copy that could answer"

    @property
    def waits_for(self) -> str | None:
        """Say what keeps the node from being ready; None if nothing does."""
        return self.shortfall if self.has_caught_up else "starting: units are starting"

    def run(
        self,
        stopped: threading.Event,
        on_ready: Callable[[], object] = lambda: None,
        interval_s: float = 0.05,
        prepare: Callable[[], object] = lambda: None,
        on_shortfall: Callable[[str], object] = lambda shortfall: None,
    ) -> bool:
        """Run the units until asked to stop. Returns whether every unit then ended without an error.

        on_ready: called once all units have caught up, and again once they have after one was started again. Units
            that do not hear one another for a while, as while the broker is away, are no news.
        interval_s: how often the units are watched, in seconds.
        prepare: called before any unit is started, once the folder is known to be this node's alone.
        on_shortfall: called, in the place of `on_ready`, with the shortfall that keeps the node from being ready.
        """
        with _held(self._folder):
            # The units read it, and must not make one each.
            node_identity(self._folder, self._name)
            prepare()
            processes, units_run = list(self._others), False
            said: tuple[int, str | None] = -1, None
            try:
                while not stopped.wait(interval_s):
                    for process in processes:
                        if process.watch() and process in self.units and self.leader is not None:
                            ended = UnitEnded(process.index, time.time_ns() // 1_000_000)
                            self.leader.tell(_encode(ended) + b"\n")
                    self._check_refusal()
                    if not units_run and all(each.is_ready for each in self._others):
                        # The node may have its name.
                        processes, units_run = processes + self.units, True
                    news = self._news(said)
                    if news is not None:
                        said = news
                        if news[1] is None:
                            _log.info("ready: %s", counted(len(self.units), "unit"))
                            on_ready()
                        else:
                            _log.warning("%s", news[1])
                            on_shortfall(news[1])
            finally:
                for process in processes:
                    process.ask_to_stop()
                deadline_s = time.monotonic() + STOP_S
                codes = [process.end(deadline_s) for process in processes]
        return not any(codes)

    def _news(self, said: tuple[int, str | None]) -> tuple[int, str | None] | None:
        """Return after how many starts of units the node has caught up, and the shortfall that keeps it from being
        ready; None if that is no news. Once it was ready, a shortfall is news after the next start alone.

        said: what was returned last.
        """
        now = sum(unit.starts for unit in self.units), self.shortfall
        return now if self.has_caught_up and said not in ((now[0], None), now) else None

    def _check_refusal(self) -> None:
        for process in self._others:
            if process.heartbeat.get("refused"):
                raise NodeRefusedError(str(process.heartbeat["refused"]))


def _check_folder(folder: Path) -> None:
    """Create the folder, or check that it is empty or a node's. Raises NodeFolderError."""
    try:
        make_private(folder)
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
            # The process id is needed only for the message above. If a full disk refuses it, the node may still
            # start.
            os.truncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode("ascii"), 0)
        make_private(folder / TASKS)
        exposed = exposure(folder)
        if exposed is not None:
            _log.warning("%s", exposed)
        yield
    finally:
        os.close(handle)
