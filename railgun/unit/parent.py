"""The connection of a child process (unit, leader or node) to its parent process.

The parent process asks on standard input; answers go to standard output. When standard input ends, this process
stops.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Callable

import msgspec

METRICS = b"metrics\n"
"""The line with which the parent process asks for the metrics."""

_encode = msgspec.json.Encoder().encode


class Parent:
    """Reads requests of the parent process in a thread of its own.

    stopped: is set when the input ends.
    reads: the file descriptor of the input; standard input by default.
    metrics: returns the text that answers METRICS.
    """

    def __init__(self, stopped: threading.Event, reads: int = 0) -> None:
        self._stopped, self._reads = stopped, reads
        self._writing = threading.Lock()
        self.metrics: Callable[[], str] = str
        threading.Thread(target=self._listen, name="parent", daemon=True).start()

    def write(self, line: bytes) -> None:
        """Send a line to the parent process. Ignores a closed pipe: `stopped` is set when standard input ends."""
        with self._writing, contextlib.suppress(BrokenPipeError):
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()

    def _listen(self) -> None:
        while request := os.read(self._reads, 1024):
            if METRICS in request:
                self.write(_encode({"version": 1, "metrics": self.metrics()}) + b"\n")
        self._stopped.set()
