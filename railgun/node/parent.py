"""The connection of a child process (unit, leader or node) to its parent process.

The parent process asks on standard input; answers go to standard output. When standard input ends, this process
stops. A node is the parent of its units and its leader. The parent of a node is whatever program started it.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Callable

import msgspec

from railgun.node.relay import LINE_BYTES_MAX, Message, Received, received, sent

METRICS = b"metrics\n"
"""The line with which the parent process asks for the metrics."""


class UnitEnded(msgspec.Struct, frozen=True):
    """The line with which a node tells its leader's process that a unit's process has ended by itself.

    unit: its index.
    at_ms: when the node noticed that, in ms since 1970; always before it starts the unit again.
    error: why it ended, in one line; empty if the node is of a release that does not say.
    """

    unit: int
    at_ms: int
    error: str = ""


_encode = msgspec.json.Encoder().encode
_decode_ended = msgspec.json.Decoder(UnitEnded).decode
_READ_BYTES = 1 << 16
# What the node adds to a line that it passes on is shorter than this.
_LINE_BYTES_MAX = LINE_BYTES_MAX + 1_024


class Parent:
    """Reads requests of the parent process in a thread of its own.

    stopped: is set when the input ends.
    reads: the file descriptor of the input; standard input by default.
    metrics: returns the text that answers METRICS.
    unit_ended: is called with each UnitEnded, by the thread that reads.
    take: is called with each message of another process of the node, by the thread that reads. It may be set later:
        messages that come before it is set are dropped.
    """

    def __init__(
        self,
        stopped: threading.Event,
        reads: int = 0,
        unit_ended: Callable[[UnitEnded], object] = lambda ended: None,
        take: Callable[[Received], object] = lambda received: None,
    ) -> None:
        self._stopped, self._reads, self._unit_ended, self.take = stopped, reads, unit_ended, take
        self._writing = threading.Lock()
        self.metrics: Callable[[], str] = str
        threading.Thread(target=self._listen, name="parent", daemon=True).start()

    def write(self, line: bytes) -> None:
        """Send a line to the parent process. Ignores a closed pipe: `stopped` is set when standard input ends."""
        with self._writing, contextlib.suppress(BrokenPipeError):
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()

    def send(self, to: str, message: Message) -> None:
        """Send a message to another process of the node. It may be dropped. Any thread may call this."""
        self.write(sent(to, message))

    def _listen(self) -> None:
        begun = b""
        while read := os.read(self._reads, _READ_BYTES):
            *lines, begun = (begun[-_LINE_BYTES_MAX:] + read).split(b"\n")
            if METRICS.rstrip() in lines:
                self.write(_encode({"version": 1, "metrics": self.metrics()}) + b"\n")
            for line in lines:
                # Other lines are ignored: the input of a node may come from any program.
                found = received(line)
                if found is not None:
                    self.take(found)
                    continue
                with contextlib.suppress(msgspec.MsgspecError):
                    self._unit_ended(_decode_ended(line))
        self._stopped.set()
