"""The table of requests that wait for answers of tasks. It bounds their events and bytes.

`Exchange` has one. A reply names the request that it answers by a sequence number, from which the table finds it.
"""

import heapq
import threading
from collections import Counter
from itertools import pairwise
from time import monotonic

import numpy as np

from frontend.exchange.pending import PendingRequest
from frontend.exchange.pending_query import PendingQuery
from frontend.exchange.seen_offsets import SeenOffsets
from frontend.problems import refusal
from railgun.wire.query_record import Refusal
from railgun.wire.reply import ReplyBatch
from railgun.wording import counted

ROW_BITS = 20
EVENTS_MAX = 1 << ROW_BITS
"""Events that may be published together. A sequence is the number of a request, then a row in it in `ROW_BITS` bits."""
_ROW_MASK = EVENTS_MAX - 1


class PendingTable:
    """Requests that wait for answers. Several threads use it.

    counts: how many `records` of replies have come, and the answers in them: `answers` that were waited for,
        `repeated` ones, `late` ones to requests that wait no longer, `older` ones to another run of this front-end.
    seen: is told the offsets of answered records.
    lock: held while answers are taken. Hold it to read a request that may get answers meanwhile.
    """

    def __init__(
        self, incarnation: int, events_limit: int, bytes_limit: int, seen: SeenOffsets | None = None
    ) -> None:
        self._incarnation, self._seen = incarnation, seen or SeenOffsets()
        self.events_limit, self.bytes_limit = events_limit, bytes_limit
        self.events = 0
        self.size_bytes = 0
        self.counts: Counter[str] = Counter()
        self.lock = threading.Lock()
        self._by_number: dict[int, PendingRequest] = {}
        self._queries: dict[int, PendingQuery] = {}
        # A heap of (when a request's time is over, its number).
        self._deadlines: list[tuple[float, int]] = []
        self._last = 0

    def check(self, events: int, size_bytes: int) -> None:
        """Raise ProblemError (503) if this many events and bytes do not fit now."""
        if self.events and self.events + events > self.events_limit:
            raise refusal(
                503,
                f"{counted(self.events, 'event waits', 'events wait')} for answers; send it again a little later",
            )
        if self.size_bytes and self.size_bytes + size_bytes > self.bytes_limit:
            raise refusal(
                503, f"{self.size_bytes} bytes of events wait for answers; send it again a little later"
            )

    def number(self) -> int:
        """Return a new number for a request. The sequences of its events begin at number << ROW_BITS."""
        with self.lock:
            self._last += 1
            return self._last

    def add(self, pending: PendingRequest) -> None:
        """Let a request wait for its answers. Raises ProblemError (503) if there is no room for it."""
        with self.lock:
            self.check(len(pending), pending.size_bytes)
            self._by_number[pending.number] = pending
            if isinstance(pending, PendingQuery):
                self._queries[pending.number] = pending
            self.events += len(pending)
            self.size_bytes += pending.size_bytes
            heapq.heappush(self._deadlines, (pending.begun_s + pending.timeout_ms / 1000, pending.number))

    def remove(self, pending: PendingRequest) -> bool:
        """Let a request wait no longer. Return False if it did not wait."""
        with self.lock:
            return self._remove(pending)

    def gather(self, batch: ReplyBatch) -> list[PendingRequest]:
        """Take a reply record. Return the requests that have all their answers now; they wait no longer."""
        own = batch.incarnation == self._incarnation
        self.counts["records"] += 1
        if not own.all():
            self.counts["older"] += int(np.count_nonzero(~own))
        numbers = np.where(own, batch.sequence >> ROW_BITS, -1)
        edges = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(numbers)]
        rows = batch.sequence & _ROW_MASK
        finished: list[PendingRequest] = []
        created = -1
        with self.lock:
            for first, after in pairwise(edges):
                number = int(numbers[first])
                if number < 0:
                    continue
                pending = self._by_number.get(number)
                count = 0
                if pending is not None:
                    created = pending.homes.created
                    count = pending.gather(batch, first, after, rows[first:after])
                self.counts["answers"] += count
                self.counts["repeated" if pending is not None else "late"] += after - first - count
                if pending is not None and not pending.left and pending.is_readable:
                    self._remove(pending)
                    finished.append(pending)
        if created >= 0:
            # A record is of one task, and all that wait for it are of the same stream.
            source = batch.source
            task = source.stream, created, source.partitioner, source.partition
            self._seen.note(task, int(batch.offset[-1]))
        return finished

    def refuse(self, refusal: Refusal) -> list[PendingRequest]:
        """Take the refusal of a query. Return the query, which waits no longer; nothing if it did not wait."""
        found: list[PendingRequest] = []
        with self.lock:
            pending = self._queries.get(refusal.number)
            if pending is not None and refusal.incarnation == self._incarnation:
                pending.refuse(refusal.detail)
                self._remove(pending)
                found.append(pending)
        return found

    def take_held(self) -> list[PendingRequest]:
        """Return the requests that had all answers and waited for the catalogue to be read; they wait no longer."""
        with self.lock:
            found = [each for each in self._by_number.values() if not each.left and each.is_readable]
            for pending in found:
                self._remove(pending)
        return found

    def overdue(self, now_s: float) -> list[PendingRequest]:
        """Return the requests whose time is over; they wait no longer. now_s: by the monotonic clock."""
        found: list[PendingRequest] = []
        with self.lock:
            while self._deadlines and self._deadlines[0][0] <= now_s:
                pending = self._by_number.get(heapq.heappop(self._deadlines)[1])
                if pending is not None:
                    self._remove(pending)
                    found.append(pending)
        return found

    def all(self) -> list[PendingRequest]:
        """Return all requests that wait, value queries among them."""
        with self.lock:
            return list(self._by_number.values())

    def queries(self) -> list[PendingQuery]:
        """Return the value queries that wait."""
        with self.lock:
            return list(self._queries.values())

    def oldest_s(self) -> float:
        """Return how long the oldest request has waited, in seconds; 0 if none waits."""
        with self.lock:
            first = next(iter(self._by_number.values()), None)
            return 0.0 if first is None else monotonic() - first.begun_s

    def _remove(self, pending: PendingRequest) -> bool:
        if self._by_number.pop(pending.number, None) is None:
            return False
        self._queries.pop(pending.number, None)
        self.events -= len(pending)
        self.size_bytes -= pending.size_bytes
        # The deadlines of answered requests stay until their time. They are cleared when they outnumber the others.
        if len(self._deadlines) > 64 + 2 * len(self._by_number):
            self._deadlines = [each for each in self._deadlines if each[1] in self._by_number]
            heapq.heapify(self._deadlines)
        return True
