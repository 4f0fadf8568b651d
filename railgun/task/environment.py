"""What a task takes from outside: clocks, randomness, and an executor for what it does in the background."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from railgun.config.processors import processors
from reservoir.executor import Executor
from reservoir.thread_executor import ThreadExecutor

_PROCESSORS = processors()


def used_s() -> float:
    """Seconds of processor time that this process has used, as if on all the processors it may use at once."""
    return time.process_time() / _PROCESSORS


@dataclass(frozen=True, slots=True)
class TaskEnvironment:
    """What a task knows of its machine beside its files. The defaults are this process's own; no other file names them.

    now: seconds of a clock that never goes back.  used_s: see `TaskView`.  randomness(n): n bytes that nobody can
    guess.  executor: runs what a task does beside its own thread. One may serve all tasks of a process.
    """

    now: Callable[[], float] = time.monotonic
    used_s: Callable[[], float] = used_s
    randomness: Callable[[int], bytes] = os.urandom
    executor: Executor = field(default_factory=ThreadExecutor)
