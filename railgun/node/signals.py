"""Runs the actions of signals in a thread, so that an action may wait for locks.

Python runs a signal handler in the main thread, at any point of its work. If the thread holds the lock of an event
then, as `Event.wait` does for a moment, a handler that sets the event waits for that lock for ever. While the main
thread waits in a library, no handler runs at all.
"""

import logging
import os
import signal
import threading
from collections.abc import Callable, Mapping
from types import FrameType

_log = logging.getLogger("railgun.signals")


def on_signals(actions: Mapping[signal.Signals, Callable[[], object]]) -> None:
    """Call the action of each signal that arrives from now on, in one thread of their own.

    Only the main thread may call this, and only once in a process. An action that fails is logged.
    """
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    signal.set_wakeup_fd(writes, warn_on_full_buffer=False)

    def ignore(signal_number: int, frame: FrameType | None) -> None:
        """Do nothing: the signal's number is written to the pipe by `set_wakeup_fd`."""

    def listen() -> None:
        while True:
            for number in os.read(reads, 64):
                if number not in actions:
                    continue
                try:
                    actions[signal.Signals(number)]()
                except Exception:  # noqa: BLE001 - the thread has to stay for the next signal
                    _log.exception("a defect: %s", signal.Signals(number).name)

    for number in actions:
        signal.signal(number, ignore)
    threading.Thread(target=listen, name="signals", daemon=True).start()


def stop_when_asked(stopped: threading.Event) -> None:
    """Set `stopped` on SIGTERM or SIGINT."""
    on_signals({signal.SIGTERM: stopped.set, signal.SIGINT: stopped.set})
