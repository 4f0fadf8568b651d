"""Scores every departure over HTTP, adds a metric meanwhile, and checks a sample by brute force."""

import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from railgun.catalog.model import Definitions
from railgun.client.applying import carry_out, filled, plan
from railgun.client.client import Client
from railgun.demo.brute_force import BruteForce, same
from railgun.demo.flights import LATER_METRIC, LATER_SQL, STREAM, Flight


def percentile(sorted_s: Sequence[float], share: float) -> float:
    """Return the value behind this share of a sorted, non-empty list."""
    return sorted_s[min(len(sorted_s) - 1, int(share * len(sorted_s)))]


class Latencies:
    """Collects the latencies of requests, in seconds."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def text(self) -> str:
        """Return p50, p99 and p99.9 in ms."""
        if not self.seconds:
            return "…"
        ordered = sorted(self.seconds)
        shares = (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))
        return "   ".join(f"{name} {percentile(ordered, share) * 1000:.2f} ms" for name, share in shares)


BATCH_EVENTS = 1_000
SINGLE_EVENTS = 3_000
SHOWN_DIFFERENCES = 5
_POLL_S = 0.02


class RefusedError(Exception):
    """An event was refused, though none should be."""


@dataclass(slots=True)
class Later:
    """The metric that is added while departures are scored.

    share: how far its fill has come, from 0 to 1.
    batches: how many batches were sent until it was warm; None until then.
    """

    share: float = 0.0
    began_s: float = field(default_factory=time.perf_counter)
    seconds: float = 0.0
    batches: int = 0
    warm: bool = False


@dataclass(slots=True)
class Progress:
    """The progress of the scoring. latest: some departures of the newest batch, with the metrics of their replies."""

    total: int
    done: int = 0
    seconds: float = 0.0
    batches: Latencies = field(default_factory=Latencies)
    singles: Latencies = field(default_factory=Latencies)
    latest: list[tuple[Flight, dict[str, Any]]] = field(default_factory=list)
    newest_events_per_s: float = 0.0
    later: Later | None = None

    @property
    def events_per_s(self) -> float:
        """The throughput of the batches so far."""
        batched = self.done - len(self.singles.seconds)
        spent = sum(self.batches.seconds)
        return batched / spent if spent else 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """How many of the `compared` results were equal, and the first few that were not, in words."""

    compared: int
    equal: int
    differences: tuple[str, ...]


class Watch(Protocol):
    """Shows the demo's progress: `PlainLines` and `Board` do."""

    def scored(self, progress: Progress) -> None:
        """Take the progress after a batch."""

    def checked(self, done: int, total: int) -> None:
        """Take the progress of the check, which computes the sample again."""


class _Reply(msgspec.Struct):
    """A reply; or a problem in its place, which has a status."""

    metrics: dict[str, Any] = {}
    warming: list[str] = []
    status: int = 0
    detail: str = ""

    def answered(self) -> dict[str, Any]:
        """Return the metrics that answer already. Raises RefusedError."""
        if self.status:
            raise RefusedError(f"an event was refused: {self.detail}")
        return {name: value for name, value in self.metrics.items() if name not in self.warming}


_REPLIES = msgspec.json.Decoder(_Reply)
_EVENTS = msgspec.json.Encoder()


def lines_of(events: Sequence[Any]) -> bytes:
    """Return events as the lines that are sent to a server."""
    return _EVENTS.encode_lines(events)


def metrics_of(answer: bytes, events: int) -> list[dict[str, Any]]:
    """Return the metrics of each line of an answer. events: how many it answers. Raises RefusedError."""
    replies = [reply.answered() for reply in _REPLIES.decode_lines(answer)]
    if len(replies) != events:
        raise RefusedError(f"{events} events got {len(replies)} replies")
    return replies


def register(client: Client, wanted: Definitions) -> None:
    """Register streams and their metrics. Raises ClientError."""
    for _ in carry_out(client, plan(client, wanted)):
        pass


class Scoring:
    """Sends departures in order over one connection, so that no event overtakes another.

    later_at: the share of the departures after which a metric is added.
    found: the metrics of the sampled rows.
    """

    def __init__(
        self,
        client: Client,
        flights: Sequence[Flight],
        sample: set[int],
        watch: Watch,
        later_at: float = 0.5,
    ) -> None:
        self._client, self._flights, self._sample, self._watch = client, flights, sample, watch
        self._progress, self._later_at = Progress(len(flights)), later_at
        self._began_s = time.perf_counter()
        self.found: dict[int, dict[str, Any]] = {}

    def run(self) -> None:
        """Send most departures in batches, and the last ones one by one, as they would arrive.

        Raises ClientError, RefusedError.
        """
        singles_from = max(0, len(self._flights) - SINGLE_EVENTS)
        for first in range(0, singles_from, BATCH_EVENTS):
            self._batch(first, min(singles_from, first + BATCH_EVENTS))
            self._look_after_later(singles_from)
            self._show()
        while self._progress.later is not None and not self._progress.later.warm:
            time.sleep(_POLL_S)
            self._look_after_later(singles_from)
            self._show()
        for row in range(singles_from, len(self._flights)):
            self._single(row)
            if row % 50 == 0 or row == len(self._flights) - 1:
                self._show()

    def _batch(self, first: int, last: int) -> None:
        batch, progress = self._flights[first:last], self._progress
        lines = lines_of(batch)
        start_s = time.perf_counter()
        answer = self._client.score_lines(STREAM, lines)
        seconds = time.perf_counter() - start_s
        replies = metrics_of(answer, len(batch))
        progress.batches.seconds.append(seconds)
        progress.newest_events_per_s = len(batch) / seconds
        progress.done += len(batch)
        progress.latest = [
            (batch[row], replies[row]) for row in range(0, len(batch), max(1, len(batch) // 3))
        ]
        self.found |= {row: replies[row - first] for row in range(first, last) if row in self._sample}

    def _single(self, row: int) -> None:
        event = msgspec.to_builtins(self._flights[row])
        start_s = time.perf_counter()
        body = self._client.score(STREAM, event)
        self._progress.singles.seconds.append(time.perf_counter() - start_s)
        reply = msgspec.convert(body, _Reply).answered()
        self._progress.done += 1
        self._progress.latest = [(self._flights[row], reply)]
        if row in self._sample:
            self.found[row] = reply

    def _look_after_later(self, batched: int) -> None:
        """Add the later metric when it is time. Then follow its fill."""
        progress = self._progress
        if progress.later is None:
            if progress.done >= batched * self._later_at:
                progress.later = Later()
                self._client.add_metrics(STREAM, LATER_SQL)
            return
        later = progress.later
        if later.warm:
            return
        later.share, warming = filled(self._client, STREAM)
        later.seconds = time.perf_counter() - later.began_s
        later.batches += 1
        later.warm = LATER_METRIC not in warming

    def _show(self) -> None:
        self._progress.seconds = time.perf_counter() - self._began_s
        self._watch.scored(self._progress)


def choose(flights: Sequence[Flight], size: int, seed: int) -> set[int]:
    """Choose the rows to check."""
    return set(random.Random(seed).sample(range(len(flights)), min(size, len(flights))))


def check(flights: Sequence[Flight], found: dict[int, dict[str, Any]], watch: Watch) -> Verdict:
    """Compute the sampled rows again, and compare every result of a metric that answered."""
    truth = BruteForce(flights)

    def rows() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
        for done, (row, got) in enumerate(found.items(), 1):
            expected = truth.results(row)
            if LATER_METRIC not in got:
                # The metric did not exist yet.
                expected.pop(LATER_METRIC, None)
            yield str(flights[row].departure), expected, got
            watch.checked(done, len(found))

    return compare(rows())


def compare(rows: Iterable[tuple[str, Mapping[str, Any], Mapping[str, Any]]]) -> Verdict:
    """Compare every expected result. rows: (name of the event, expected results, results of the reply)."""
    compared = equal = 0
    differences: list[str] = []
    for event, expected, got in rows:
        for name, value in expected.items():
            compared += 1
            if name in got and same(value, got[name]):
                equal += 1
            elif len(differences) < SHOWN_DIFFERENCES:
                differences.append(f"{event}: {name} is {got.get(name)!r}, brute force says {value!r}")
    return Verdict(compared, equal, tuple(differences))
