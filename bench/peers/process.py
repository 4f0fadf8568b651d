"""The measuring side of a peer's process: how long events take, and what all processes of the system use meanwhile."""

import time
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

import psutil

from bench.children import Child
from bench.peers.protocol import Task
from bench.process import cpu_s as cpu_s_of


@dataclass(frozen=True, slots=True)
class Taken:
    """What some events took.

    cpu_s: of all processes of the system, all threads.  written_bytes: what they wrote to files.
    resident_bytes: their memory at the end.  broker_cpu_s, broker_written_bytes: of the broker, if there is one.
    """

    events: int
    seconds: float
    cpu_s: float
    written_bytes: int
    resident_bytes: int
    broker_cpu_s: float = 0.0
    broker_written_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """What some processes have used so far.

    written_bytes: by their calls, to sockets too in Java.  stored_bytes: of pages of files; none of those in memory.
    """

    cpu_s: float = 0.0
    written_bytes: int = 0
    stored_bytes: int = 0
    resident_bytes: int = 0


class Running(Protocol):
    """A peer that runs, however it gets its events. Leaving the `with` block ends it."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def take(self, events: int) -> Taken:
        """Have it process the next events. Raises ChildFailedError."""


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
        before, begun = usage_of(self._child.process.pid), time.perf_counter()
        self._child.ask()
        seconds, after = time.perf_counter() - begun, usage_of(self._child.process.pid)
        return Taken(
            events,
            seconds,
            after.cpu_s - before.cpu_s,
            after.written_bytes - before.written_bytes,
            after.resident_bytes,
        )


def usage_of(pid: int) -> Usage:
    """Add up what a process and those that it started have used so far."""
    root = psutil.Process(pid)
    cpu_s, written, stored, resident = 0.0, 0, 0, 0
    for process in (root, *root.children(recursive=True)):
        with suppress(psutil.NoSuchProcess, OSError):
            times = process.cpu_times()
            cpu_s += cpu_s_of(process.pid) + times.children_user + times.children_system
            counters = process.io_counters()
            written += counters.write_chars
            stored += counters.write_bytes
            resident += process.memory_info().rss
    return Usage(cpu_s, written, stored, resident)
