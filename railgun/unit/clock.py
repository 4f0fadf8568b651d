"""The clock of a unit, and how much of its time the unit has nothing to do.

Tasks may spend idle time on early checkpoints.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


def _date_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of a unit.

    now: returns the seconds of a clock that never goes back.
    sleep: waits for some seconds.
    date_ms: returns the time, in ms since 1970. It may go back, and differ from that of other machines.
    """

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    date_ms: Callable[[], int] = _date_ms


CLOCK = Clock()


class IdleMeter:
    """Measures idle time. The unit's loop tells it when it may wait. One thread calls all methods.

    now: returns the time of a clock, in seconds.
    cpu_s: returns the processor time that this thread has used, in seconds.
    waited_s: for how many seconds the unit had nothing to do.
    """

    def __init__(
        self, now: Callable[[], float] = time.monotonic, cpu_s: Callable[[], float] = time.thread_time
    ) -> None:
        self._now, self._cpu_s = now, cpu_s
        self.waited_s = 0.0

    def used_s(self) -> float:
        """Return for how many seconds the unit had something to do, including time spent waiting for a processor.

        The value counts from an arbitrary start, so only differences have a meaning.
        """
        return self._now() - self.waited_s

    @contextmanager
    def maybe(self) -> Iterator[None]:
        """Count the time in which the block uses no processor as idle."""
        started_s, begun_cpu_s = self._now(), self._cpu_s()
        try:
            yield
        finally:
            self.waited_s += max(0.0, self._now() - started_s - (self._cpu_s() - begun_cpu_s))
