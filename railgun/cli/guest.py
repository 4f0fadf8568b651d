"""A command that is a guest on its machine: what answers others there goes first."""

import os
from contextlib import suppress
from pathlib import Path

_LOWEST = 19
_AUTOGROUP = Path("/proc/self/autogroup")


def be_a_guest() -> None:
    """From now on this process, and what it starts, gets the time that nobody else wants. There is no way back.

    Where the system has the policy for that (Linux), one that wakes up takes the processor from it at once; being nice
    alone leaves it a few milliseconds at a time.
    """
    with suppress(OSError):
        os.nice(_LOWEST)
    if hasattr(os, "SCHED_IDLE"):
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    # Linux shares processors among sessions first. One with others in it, a shell's say, is left as it is.
    if os.getsid(0) == os.getpid():
        with suppress(OSError):
            _AUTOGROUP.write_text(str(_LOWEST))
