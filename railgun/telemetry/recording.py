"""Counts, batch by batch, a process's events, their outcomes and the time that they took.

Engines and front-ends have one `Recording`. Adding to a histogram costs next to nothing. One thread writes it; another
may read it at any time.
"""

from array import array
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from time import perf_counter


class Buckets:
    """A histogram: counts of values by growing upper bounds. A last bucket, without a bound, takes greater values.

    shown: those of the bounds that Prometheus is told; None: all.
    Adding takes no lock. A reader may miss the value that is being added.
    """

    __slots__ = ("_counts", "_shown", "bounds", "total")

    def __init__(self, bounds: tuple[float, ...], shown: tuple[float, ...] | None = None) -> None:
        self.bounds = bounds
        self._shown = frozenset(bounds if shown is None else shown)
        self._counts = array("Q", bytes(8 * (len(bounds) + 1)))
        self.total = 0.0

    def add(self, value: float, times: int = 1) -> None:
        """Count a value so many times."""
        self._counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    def counts(self) -> bytes:
        """Return the present counts of all buckets, the last one's too, as unsigned numbers of 64 bits."""
        return self._counts.tobytes()

    def cumulative(self) -> list[tuple[str, float]]:
        """Return (upper bound in Prometheus' form, count of values at or below it) for each bound that is shown.

        The last bound is "+Inf".
        """
        found: list[tuple[str, float]] = []
        counts = self._counts[:]
        sum_ = 0
        for bound, count in zip(self.bounds, counts):
            sum_ += count
            if bound in self._shown:
                found.append((str(bound), float(sum_)))
        return [*found, ("+Inf", float(sum_ + counts[-1]))]


TOTAL = "total"
STAGES = ("queue", "admission", "publish", "log", "process", "durable", "encode", TOTAL)
"""The stages of an event, in order:

queue: it waits for the scoring thread.  admission: it is checked and made a record.
publish: on Kafka it is handed to the producer.  log: on Kafka, until the broker has it; this lies within `process`.
process: tasks process it while the log is written; on Kafka, there and back again.
durable: it waits for the rest of that writing.  encode: it is made a reply.
total: all of this, as the HTTP server sees it.
"""

SECONDS_BOUNDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
_TENTHS = (*range(100, 250, 10), *range(250, 500, 25), *range(500, 1_000, 50))
LATENCY_BOUNDS = (
    *(float(f"{each}e{power}") for power in range(-7, 1) for each in _TENTHS),
    1_000.0,
)
"""The bounds of latencies of requests in seconds, from 10 µs to 1,000 s. Each is at most 10 % above the one before.

`SECONDS_BOUNDS` are among them, so that one histogram has the counts of both.
"""
BATCH_BOUNDS = tuple(float(1 << power) for power in range(0, 17, 2))

REASONS = ("malformed", "invalid", "timeout", "full", "unavailable")
"""The reasons for refusing an event or a request, in order: it is not JSON; it does not fit the stream's definition; it
was not answered in time; too much is under way already; the engine is starting, stopping or stopped."""


@dataclass(slots=True, eq=False)
class StreamRecord:
    """The counts of one stream.

    events: the events that were accepted and answered.
    refused: refused events by reason.
    late: late events by (partitioner, outcome).
    duplicates: duplicates by partitioner.
    batches: the numbers of events that were scored together.
    queries: value queries by outcome (answered, refused, timeout, unavailable).
    query_seconds: how long value queries took.
    stages: by stage, how long batches were in it. `total` has the finer bounds of latencies.
    noted: some of the answers that were given lately; whoever looks at them empties it.
    wants_answers: whether more of them are wanted.

    Each member is written by one thread at a time; reading needs no lock.
    """

    events: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    late: Counter[tuple[str, str]] = field(default_factory=Counter)
    duplicates: Counter[str] = field(default_factory=Counter)
    batches: Buckets = field(default_factory=lambda: Buckets(BATCH_BOUNDS))
    queries: Counter[str] = field(default_factory=Counter)
    query_seconds: Buckets = field(default_factory=lambda: Buckets(SECONDS_BOUNDS))
    stages: dict[str, Buckets] = field(
        default_factory=lambda: {
            stage: Buckets(LATENCY_BOUNDS if stage == TOTAL else SECONDS_BOUNDS, SECONDS_BOUNDS)
            for stage in STAGES
        }
    )
    noted: list[object] = field(default_factory=list)
    wants_answers: bool = True

    def stage_timer(self) -> "StageTimer":
        """Return a clock for one batch, which starts now."""
        return StageTimer(self.stages)


class StageTimer:
    """Measures the time of one batch, stage by stage."""

    __slots__ = ("_last_s", "_stages")

    def __init__(self, stages: dict[str, Buckets]) -> None:
        self._stages = stages
        self._last_s = perf_counter()

    def end(self, stage: str) -> None:
        """End a stage: count the time since the end of the stage before."""
        now_s = perf_counter()
        self._stages[stage].add(now_s - self._last_s)
        self._last_s = now_s


class Recording:
    """The counts of one process. A stream's counts go when the stream is dropped."""

    def __init__(self) -> None:
        self._streams: dict[str, StreamRecord] = {}

    def stream(self, name: str) -> StreamRecord:
        """Return the counts of a registered stream, which are made when they are first asked for."""
        found = self._streams.get(name)
        return self._streams.setdefault(name, StreamRecord()) if found is None else found

    def forget(self, name: str) -> None:
        """Drop the counts of a stream."""
        self._streams.pop(name, None)

    def streams(self) -> list[tuple[str, StreamRecord]]:
        """Return the present streams and their counts, by name."""
        return sorted(self._streams.copy().items(), key=lambda each: each[0])
