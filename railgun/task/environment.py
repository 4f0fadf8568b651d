"""The parts of the machine that a task is given from outside: clocks, randomness, an executor for background work."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from railgun.config.processors import processors
from reservoir.executor import Executor
from reservoir.thread_executor import ThreadExecutor

_PROCESSORS = processors()


def used_s() -> float:
    """Return the processor time that this process has used, in seconds, divided by the number of processors it may
    use.
    """
    return time.process_time() / _PROCESSORS


@dataclass(frozen=True, slots=True)
class TaskEnvironment:
    """The parts of the machine that a task uses, besides its files. The defaults are those of this process.

    No other file of the task refers to these defaults directly, so that tests and simulators can replace them.

    now: returns seconds of a clock that never goes back.
    used_s: returns seconds for which this process has kept all processors busy, or a unit had something to do.
    randomness: returns n bytes that nobody can guess, for a number n.
    executor: runs what a task does outside its own thread. All tasks of a process may share one.
    """

    now: Callable[[], float] = time.monotonic
    used_s: Callable[[], float] = used_s
    randomness: Callable[[int], bytes] = os.urandom
    executor: Executor = field(default_factory=ThreadExecutor)
