"""The demo's work: score every departure on a durable engine, then check a sample by brute force."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from railgun.demo.brute_force import BruteForce, same
from railgun.demo.flights import STREAM, Flight, as_event, as_table, definitions
from railgun.demo.latencies import Latencies
from railgun.engine.engine import Engine
from railgun.engine.offline import OfflineRun
from railgun.wire.door import Roles
from railgun.wire.door_table import TableDoor

BATCH_EVENTS = 1_000
SINGLE_EVENTS = 3_000
_WARM_UP_EVENTS = 4_000
_SHOWN_DIFFERENCES = 5


@dataclass(slots=True)
class Progress:
    """How far the scoring has come. latest: some departures of the newest batch with their replies' metrics."""

    total: int
    done: int = 0
    seconds: float = 0.0
    batches: Latencies = field(default_factory=Latencies)
    singles: Latencies = field(default_factory=Latencies)
    latest: list[tuple[Flight, dict[str, Any]]] = field(default_factory=list)
    newest_events_per_s: float = 0.0

    @property
    def events_per_s(self) -> float:
        """Throughput of the batches so far."""
        batched = self.done - len(self.singles.seconds)
        spent = sum(self.batches.seconds)
        return batched / spent if spent else 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of `compared` results, how many were equal; the first few that were not, in words."""

    compared: int
    equal: int
    differences: tuple[str, ...]


class Watch(Protocol):
    """Whoever shows the demo."""

    def scored(self, progress: Progress) -> None:
        """After every batch."""

    def checked(self, done: int, total: int) -> None:
        """While the sample is computed anew."""


def warm_up(flights: Sequence[Flight]) -> None:
    """Load the compiled kernels; on a new machine they are compiled here, once."""
    known = definitions()
    stream = known.streams[STREAM]
    door = TableDoor(Roles(stream.schema(1), stream.time, stream.id, stream.partitioners))
    run = OfflineRun(stream, known.metrics_of(STREAM))
    try:
        for batch in as_table(flights[:_WARM_UP_EVENTS]).to_batches():
            run.score(door.admit(batch).events)
    finally:
        run.close()


def score(
    engine: Engine, flights: Sequence[Flight], sample: set[int], watch: Watch
) -> dict[int, dict[str, Any]]:
    """Score all departures in order: most in batches, the last ones one by one, as they would come in.

    Returns the metrics of the sampled rows.
    """
    engine.apply(definitions())
    progress = Progress(len(flights))
    found: dict[int, dict[str, Any]] = {}
    singles_from = max(0, len(flights) - SINGLE_EVENTS)
    began = time.perf_counter()
    for first in range(0, singles_from, BATCH_EVENTS):
        batch = flights[first : min(singles_from, first + BATCH_EVENTS)]
        _batch(engine, batch, first, sample, progress, found)
        progress.seconds = time.perf_counter() - began
        watch.scored(progress)
    for row in range(singles_from, len(flights)):
        start = time.perf_counter()
        reply = engine.score(STREAM, as_event(flights[row]))
        progress.singles.seconds.append(time.perf_counter() - start)
        progress.done += 1
        if row in sample:
            found[row] = reply["metrics"]
        if row % 50 == 0 or row == len(flights) - 1:
            progress.latest = [(flights[row], reply["metrics"])]
            progress.seconds = time.perf_counter() - began
            watch.scored(progress)
    return found


def _batch(
    engine: Engine,
    batch: Sequence[Flight],
    first: int,
    sample: set[int],
    progress: Progress,
    found: dict[int, dict[str, Any]],
) -> None:
    table = as_table(batch)
    start = time.perf_counter()
    scored = engine.score_table(STREAM, table)
    seconds = time.perf_counter() - start
    progress.batches.seconds.append(seconds)
    progress.newest_events_per_s = len(batch) / seconds
    progress.done += len(batch)
    shown = range(0, len(batch), max(1, len(batch) // 3))
    progress.latest = [(batch[row], scored.slice(row, 1).to_pylist()[0]) for row in shown]
    for row in range(first, first + len(batch)):
        if row in sample:
            found[row] = scored.slice(row - first, 1).to_pylist()[0]


def choose(flights: Sequence[Flight], size: int, seed: int) -> set[int]:
    """The rows to be checked."""
    return set(random.Random(seed).sample(range(len(flights)), min(size, len(flights))))


def check(flights: Sequence[Flight], found: dict[int, dict[str, Any]], watch: Watch) -> Verdict:
    """Compute the sampled rows anew and compare every result."""
    truth = BruteForce(flights)
    compared = equal = 0
    differences: list[str] = []
    for done, (row, got) in enumerate(found.items(), 1):
        for name, expected in truth.results(row).items():
            compared += 1
            value = _plain(got[name])
            if same(expected, value):
                equal += 1
            elif len(differences) < _SHOWN_DIFFERENCES:
                differences.append(
                    f"{flights[row].departure}: {name} is {value!r}, brute force says {expected!r}"
                )
        watch.checked(done, len(found))
    return Verdict(compared, equal, tuple(differences))


def _plain(value: Any) -> Any:
    """A sum of longs comes from a table as a decimal without a fraction."""
    return int(value) if value is not None and type(value).__name__ == "Decimal" else value
