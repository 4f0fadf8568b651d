"""What was read of an input topic and is not done with yet: runs of records by partition, in order.

A window is what is held of one partition. All windows together are bounded, follow rebalances, and may be used from
several threads.
"""

import hashlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from time import monotonic
from typing import NamedTuple

from railgun.ingest.accepted import AcceptedBatch, Position
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
    accepted: AcceptedBatch
    offsets: list[int]
    letters: list[Letter]
    read_s: float
    patience_ms: int = ASK_MS
    published_s: float = 0.0
    values: list[bytes] | None = None
    keys: list[bytes] = field(default_factory=list)

    def positions(self) -> list[Position]:
        """Where its events came from, and what is committed by now."""
        window = self.window
        return list(zip(repeat(window.number), self.offsets, repeat(window.committed)))


# How long what is under way may take to be answered and written when a partition goes to another member.
FINISH_S = 3.0
_NUMBER_BITS = 31
PARTITION_BITS = 14
PARTITIONS_MAX = 1 << PARTITION_BITS


class Windows:
    """changed: notified of every change that lets somebody go on; hold it to look at several things at once.

    alive_s: when the thread that reads was last heard of, of time.monotonic.
    topic_id: tells this topic from one of the same name that was deleted.  limit_events: read and not written.
    commit: waits until the group goes on at these positions, where that is anybody's to do.
    """

    def __init__(
        self, topic_id: str, limit_events: int, commit: Callable[[Mapping[int, int]], object]
    ) -> None:
        digest = int.from_bytes(hashlib.blake2b(topic_id.encode(), digest_size=8).digest(), "big")
        self._topic_number = digest >> (64 - _NUMBER_BITS) >> PARTITION_BITS << PARTITION_BITS
        self._limit_events, self._commit = limit_events, commit
        self._windows: dict[int, Window] = {}
        self.changed = threading.Condition()
        self.events = 0
        self.rebalances = 0
        self.alive_s = monotonic()
        self._is_writing = False
        self._closed = False

    def of(self, partition: int) -> Window | None:
        """The window of a partition; None where it is not this front-end's."""
        return self._windows.get(partition)

    def all(self) -> list[Window]:
        """The windows as they are now."""
        with self.changed:
            return list(self._windows.values())

    @property
    def is_full(self) -> bool:
        """Whether no more should be read for now."""
        return self.events >= self._limit_events

    # --- runs ------------------------------------------------------------------------------------------

    def add(self, run: Run) -> None:
        """A run was read."""
        with self.changed:
            run.window.runs.append(run)
            run.window.position = run.after
            self.events += run.count
            if run.values is not None:
                # Nobody waits for one that has yet to be answered: whoever writes would look in vain, for each event.
                self.changed.notify_all()

    def forget(self, run: Run) -> None:
        """A run that was read last and not asked: it is read again, by whoever has the partition then."""
        with self.changed:
            if not run.window.is_abandoned:
                assert run.window.runs.pop() is run
                run.window.position = run.first
                self.events -= run.count

    def take_ready(self) -> list[Run]:
        """What can be written now. `finish` follows."""
        with self.changed:
            found = [run for window in self._windows.values() for run in window.ready()]
            self._is_writing = bool(found)
            return found

    def finish(self, runs: Iterable[Run]) -> None:
        """These were written, or nothing was."""
        with self.changed:
            self._is_writing = False
            for run in runs:
                window = run.window
                if not window.is_abandoned:
                    assert window.runs[0] is run
                    window.runs.popleft()
                    window.written = run.after
                    self.events -= run.count
            self.changed.notify_all()

    def has_ready(self) -> bool:
        """Whether something can be written; the caller holds `changed`."""
        return any(next(window.ready(), None) is not None for window in self._windows.values())

    def uncommitted(self) -> dict[int, int]:
        """By partition what is written and not known to be committed."""
        with self.changed:
            return {
                each.partition: each.written
                for each in self._windows.values()
                if each.written > each.committed
            }

    def positions(self) -> dict[int, int]:
        """By partition where the group should go on."""
        with self.changed:
            known = {
                each.partition: each.runs[0].first if each.written < 0 and each.runs else each.written
                for each in self._windows.values()
            }
        return {partition: offset for partition, offset in known.items() if offset >= 0}

    # --- rebalances ------------------------------------------------------------------------------------

    def assigned(self, partitions: list[int]) -> None:
        """Records of these will come."""
        with self.changed:
            self.rebalances += 1
            for partition in partitions:
                self._windows[partition] = Window(partition, self._topic_number | partition)

    def revoked(self, partitions: list[int]) -> None:
        """Finish what is under way, then let them go."""
        with self.changed:
            going = [self._windows[each] for each in partitions if each in self._windows]
            self.changed.wait_for(
                lambda: self._closed or not (self._is_writing or any(each.runs for each in going)), FINISH_S
            )
            self.abandon(going)
        self._commit({each.partition: each.written for each in going if each.written > each.committed})

    def lost(self, partitions: list[int]) -> None:
        """Let them go at once."""
        with self.changed:
            self.abandon([self._windows[each] for each in partitions if each in self._windows])

    def committed(self, positions: Mapping[int, int]) -> None:
        """The group goes on there."""
        with self.changed:
            for partition, offset in positions.items():
                window = self._windows.get(partition)
                if window is not None:
                    window.committed = max(window.committed, offset)

    def abandon(self, windows: Iterable[Window]) -> None:
        """Write nothing more of them."""
        with self.changed:
            for window in windows:
                window.is_abandoned = True
                self.events -= sum(run.count for run in window.runs)
                window.runs.clear()
                self._windows.pop(window.partition, None)
            self.changed.notify_all()

    def close(self) -> None:
        """Wait for nothing any more."""
        with self.changed:
            self._closed = True
            self.abandon(list(self._windows.values()))
