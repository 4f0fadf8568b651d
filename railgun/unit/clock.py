"""The clock of a unit, and how much of its time the unit has nothing to do.

Tasks may spend idle time on early checkpoints.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """What a unit waits by. now: seconds of a clock that never goes back.  sleep: returns after so many of them."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


CLOCK = Clock()


class IdleMeter:
    """Told when the loop of a unit may wait; one thread calls all of it.

    now: a clock.  cpu_s: the processor time that this thread used.  waited_s: for so long it had nothing to do.
    """

    def __init__(
        self, now: Callable[[], float] = time.monotonic, cpu_s: Callable[[], float] = time.thread_time
    ) -> None:
        self._now, self._cpu_s = now, cpu_s
        self.waited_s = 0.0

    def used_s(self) -> float:
        """Seconds that it had something to do, waiting for a processor included; only differences mean anything."""
        return self._now() - self.waited_s

    @contextmanager
    def maybe(self) -> Iterator[None]:
        """What the block does not use of a processor is waiting."""
        started_s, begun_cpu_s = self._now(), self._cpu_s()
        try:
            yield
        finally:
            self.waited_s += max(0.0, self._now() - started_s - (self._cpu_s() - begun_cpu_s))
