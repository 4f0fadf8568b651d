"""The measured side: a peer's process reads how many events to take, says when it is ready, and when they are done.

For each line "N" it prepares, and writes {"ready": N}. After the next line it processes the next N events, writes their
results out, and writes {"events": N}. It ends with its input.

A peer on a broker reads its events from a topic and writes its results to another, and is told nothing. It too
ends with its input.
"""

import json
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bench.children import say
from bench.process import end_in_order

AGGREGATES = ("count", "sum", "avg")
"""What is written for each window, in this order, behind the id of the event."""
STREAM = "payments"

WindowValues = tuple[int, float, float]
"""The count, sum and average of one window."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a peer's process is given.

    events: a file of JSON lines.  results: the file to write, a line for each event: as CSV its id, and for each window
    count, sum and average; or as JSON what `reply` makes.  windows_ms: as the peer is to be told them.  disorder_ms:
    less than this, an event may come behind the time of those before it; 0: they are in order, no two at one time.
    folder: for the peer's own files.

    broker: the address of a peer's broker, instead of both files.  prefix: of all topics that a peer makes there.
    """

    events: Path
    results: Path
    windows_ms: tuple[int, ...]
    disorder_ms: int
    folder: Path
    broker: str = ""
    prefix: str = ""

    @property
    def input(self) -> str:
        """The topic of events: JSON, keyed by the card, in one partition."""
        return f"{self.prefix}.{STREAM}.in"

    @property
    def output(self) -> str:
        """The topic of results, as `reply` makes them, in one partition."""
        return f"{self.prefix}.{STREAM}.out"

    def as_text(self) -> str:
        """Return the task as one argument of a command line."""
        return json.dumps(
            [
                *(str(self.events), str(self.results), self.windows_ms, self.disorder_ms),
                *(str(self.folder), self.broker, self.prefix),
            ]
        )

    @classmethod
    def of_text(cls, text: str) -> "Task":
        """Read what `as_text` made."""
        events, results, windows_ms, disorder_ms, folder, broker, prefix = json.loads(text)
        return cls(Path(events), Path(results), tuple(windows_ms), disorder_ms, Path(folder), broker, prefix)


class Measured(Protocol):
    """A peer that was opened for a task."""

    def prepare(self, events: int) -> Callable[[], None]:
        """Return what processes the next events and writes their results. What is done here is not measured."""

    def close(self) -> None:
        """Complete the file of results."""


def serve(opened: Callable[[Task], Measured]) -> None:
    """Run a peer's process: its only argument is the task."""
    end_in_order()
    peer = opened(Task.of_text(sys.argv[1]))
    try:
        for line in sys.stdin:
            events = int(line)
            process = peer.prepare(events)
            say({"ready": events})
            if not sys.stdin.readline():
                break
            process()
            say({"events": events})
    finally:
        peer.close()


def reply(id_: str, values: Iterable[tuple[int, WindowValues]]) -> dict[str, Any]:
    """Return the result of an event for a topic, in the form of this engine's replies. values: by a window's number."""
    metrics = {
        f"{aggregate[0]}{number}": value
        for number, of_window in values
        for aggregate, value in zip(AGGREGATES, of_window, strict=True)
    }
    return {"id": id_, "metrics": metrics}


def metric_names(windows: int) -> list[str]:
    """Return the names of the metrics in a reply, in the order of a line of results."""
    return [f"{aggregate[0]}{number}" for number in range(windows) for aggregate in AGGREGATES]


def when_input_ends(stop: Callable[[], object]) -> None:
    """Call a function from another thread once the standard input has ended."""

    def wait() -> None:
        sys.stdin.read()
        stop()

    threading.Thread(target=wait, daemon=True).start()
