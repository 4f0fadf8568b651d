"""What SIGHUP means to a process that serves."""

import contextlib
import os
import signal
from types import FrameType


def hangup_ends_it() -> bool:
    """Whether SIGHUP keeps its meaning: on a terminal that goes away, or where it is to be ignored, as by nohup."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return True
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def hold_hangup() -> None:
    """Have a SIGHUP do nothing until the process knows what to do with it, where that is to read files again: the
    process has not read them yet, and would end.
    """

    def nothing(signal_number: int, frame: FrameType | None) -> None:
        """Not SIG_IGN, which says that it is to be ignored for good."""

    if not hangup_ends_it():
        # Only the main thread may.
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGHUP, nothing)
