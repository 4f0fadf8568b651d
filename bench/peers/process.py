"""The measuring side of a peer's process: how long events take, and what all processes of the system use meanwhile."""

import time
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import psutil

from bench.children import Child
from bench.peers.protocol import Task


@dataclass(frozen=True, slots=True)
class Taken:
    """What some events took.

    cpu_s: of all processes of the system, all threads.  written_bytes: what they wrote to files, by their calls.
    resident_bytes: their memory at the end.
    """

    events: int
    seconds: float
    cpu_s: float
    written_bytes: int
    resident_bytes: int


@dataclass(frozen=True, slots=True)
class _Usage:
    cpu_s: float = 0.0
    written_bytes: int = 0
    resident_bytes: int = 0


class RunningPeer:
    """A peer's process. It is started by the `with` statement's expression, and ended by leaving the block."""

    def __init__(self, module: str, arguments: tuple[str, ...], task: Task) -> None:
        self._child = Child(module, [*arguments, task.as_text()])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.__exit__(kind, error, trace)

    def take(self, events: int) -> Taken:
        """Have it process the next events. Raises ChildFailedError."""
        self._child.tell(str(events))
        self._child.answer()
        before, begun = self._usage(), time.perf_counter()
        self._child.ask()
        seconds, after = time.perf_counter() - begun, self._usage()
        return Taken(
            events,
            seconds,
            after.cpu_s - before.cpu_s,
            after.written_bytes - before.written_bytes,
            after.resident_bytes,
        )

    def _usage(self) -> _Usage:
        """Add up what the process and those that it started have used so far."""
        root = psutil.Process(self._child.process.pid)
        cpu_s, written, resident = 0.0, 0, 0
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.NoSuchProcess, OSError):
                times = process.cpu_times()
                cpu_s += _cpu_s(process.pid) + times.children_user + times.children_system
                written += process.io_counters().write_chars
                resident += process.memory_info().rss
        return _Usage(cpu_s, written, resident)


def _cpu_s(pid: int) -> float:
    """Return the processor time of a process and all its threads, ended ones too, in finer steps than /proc has.

    Raises OSError if the process is gone.
    """
    # Linux numbers the clock of a process by its id: clock_getcpuclockid(3), which Python lacks.
    return time.clock_gettime((~pid << 3) | 2)
