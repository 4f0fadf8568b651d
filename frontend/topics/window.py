"""What was read of one partition of an input topic and is not done with: runs of records, in order."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple

from railgun.ingest.accepted import Position, Taken
from railgun.messaging.transport import Headers

# How long an event's answer is waited for the first time, and the most. Where none comes it is written to its tasks'
# logs once more, so the next time is twice as long: where all units are away for an hour, eight copies and not 120.
ASK_MS, ASK_MOST_MS = 30_000, 960_000


class Letter(NamedTuple):
    """A record that could not be used, as it came, and what is said of it."""

    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(slots=True, eq=False)
class Window:
    """number: names the partition, of this very topic, to tasks.  position: of the next record that is read; −1 before
    the first.  written: its replies before this offset are durable; −1 where none are.  committed: the group goes on
    there.  is_abandoned: another member may have the partition.
    """

    partition: int
    number: int
    position: int = -1
    written: int = -1
    committed: int = 0
    is_abandoned: bool = False
    runs: "deque[Run]" = field(default_factory=deque)

    def ready(self) -> "Iterator[Run]":
        """The runs that can be written: answered, and so is all before them."""
        for run in self.runs:
            if run.values is None:
                return
            yield run


@dataclass(slots=True, eq=False)
class Run:
    """Records that were read together. count: of them.  first, after: the offsets of the first and after the last.
    offsets: of the events that were taken, in order; letters: the others.  read_s: of perf_counter.  patience_ms: how
    long its answers are waited for before it is asked again.

    values, keys: of the replies in order, once all are there.
    """

    window: Window
    count: int
    first: int
    after: int
    taken: Taken
    offsets: list[int]
    letters: list[Letter]
    read_s: float
    patience_ms: int = ASK_MS
    asked_s: float = 0.0
    values: list[bytes] | None = None
    keys: list[bytes] = field(default_factory=list)

    def positions(self) -> list[Position]:
        """Where its events came from, and what is committed by now."""
        window = self.window
        return list(zip(repeat(window.number), self.offsets, repeat(window.committed)))
