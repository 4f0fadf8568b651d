"""Decides what SIGHUP does to a process that serves: end it, or have it read its configuration again."""

import contextlib
import os
import signal
from types import FrameType


def hangup_ends_it() -> bool:
    """Whether SIGHUP keeps its meaning, so that a server does not read files again when it comes.

    That is so on a terminal, which may go away, and if the signal is to be ignored, as under nohup.
    """
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return True
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def hold_hangup() -> None:
    """Let SIGHUP do nothing while the process starts, if SIGHUP is to mean reading files again.

    The process has not read its files yet, and by default the signal would end it.
    """

    def nothing(signal_number: int, frame: FrameType | None) -> None:
        """Do nothing. SIG_IGN would mean that the signal is to be ignored for good."""

    if not hangup_ends_it():
        # Only the main thread may set a handler.
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGHUP, nothing)
