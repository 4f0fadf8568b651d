"""Whoever started a unit or a node: asks on standard input, whose end is its own; answers go to standard output."""

import contextlib
import os
import sys
import threading
from collections.abc import Callable

import msgspec

METRICS = b"metrics\n"
"""What asks for the unit's metrics."""

_encode = msgspec.json.Encoder().encode


class Parent:
    """Listens in a thread of its own. stopped: is set with the end of what it reads, the file that is open as `reads`.
    metrics: answers METRICS."""

    def __init__(self, stopped: threading.Event, reads: int = 0) -> None:
        self._stopped, self._reads = stopped, reads
        self._writing = threading.Lock()
        self.metrics: Callable[[], str] = str
        threading.Thread(target=self._listen, name="parent", daemon=True).start()

    def write(self, line: bytes) -> None:
        """Tell it. That it listens no more will be noticed by the end of standard input."""
        with self._writing, contextlib.suppress(BrokenPipeError):
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()

    def _listen(self) -> None:
        while request := os.read(self._reads, 1024):
            if METRICS in request:
                self.write(_encode({"version": 1, "metrics": self.metrics()}) + b"\n")
        self._stopped.set()
