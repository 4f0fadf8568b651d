"""The outcome of a run, with every request of the schedule, answered or not."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bench.load.latencies import Latencies, merged

UNANSWERED, FAILED = 0, -1
"""Values of `Trace.status`: no answer came before the end of the run; the connection broke."""


class Trace:
    """What happened to n requests. The driver notes it, in one place for each request, so that noting costs little.

    due_ns, sent_ns, done_ns: int64[n] on the monotonic clock, 0 where it did not happen.  status int32[n]: what the
    answer said (200 to 299: good), UNANSWERED or FAILED.  good: int64[n] events answered well.
    """

    def __init__(self, due_ns: NDArray[np.int64], phase_of: NDArray[np.int64], events_each: int = 1) -> None:
        n = len(due_ns)
        self.due_ns, self.phase_of, self.events_each = due_ns, phase_of, events_each
        self.sent_ns, self.done_ns = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.status, self.good = np.zeros(n, np.int32), np.zeros(n, np.int64)
        self.starved = 0

    def outcome(self, phases: int, end_ns: int) -> "Outcome":
        """Latencies from when requests were due. What was never answered counts as waiting until `end_ns`, when the
        run ends at the latest, even where it ended earlier because nobody listened any more.
        """
        done_ns = np.where(self.done_ns > 0, self.done_ns, end_ns)
        latencies_ns = np.maximum(0, done_ns - self.due_ns)
        made = Outcome([Latencies() for _ in range(phases)])
        for place, latencies in enumerate(made.by_phase):
            latencies.record(latencies_ns[self.phase_of == place])
        sent = self.sent_ns > 0
        made.from_send.record((done_ns - self.sent_ns)[sent])
        made.status.update(self.status.tolist())
        made.events, made.good = len(done_ns) * self.events_each, int(self.good.sum())
        made.starved = int(self.starved)
        if sent.any():
            made.first_sent_ns, made.last_done_ns = int(self.sent_ns[sent].min()), int(self.done_ns.max())
        return made


@dataclass(slots=True)
class Outcome:
    """by_phase: latencies from when each request was due.  from_send: from when it went out, which shows less: what
    waited in the injector because an answer was slow is missing there.  status: requests by answer.  events, good: in
    requests of the schedule, and those answered well.  starved: requests that were due when every connection was
    waiting for an answer.  first_sent_ns, last_done_ns: on the monotonic clock.
    """

    by_phase: list[Latencies]
    from_send: Latencies = field(default_factory=Latencies)
    status: Counter[int] = field(default_factory=Counter)
    events: int = 0
    good: int = 0
    starved: int = 0
    first_sent_ns: int = 0
    last_done_ns: int = 0

    @property
    def latencies(self) -> Latencies:
        """Return the latencies of all phases."""
        return merged(self.by_phase)

    @property
    def bad(self) -> int:
        """The number of events that were not answered well."""
        return self.events - self.good

    @property
    def events_per_s(self) -> float:
        """The rate of events answered well, from the first sending to the last answer."""
        seconds = (self.last_done_ns - self.first_sent_ns) / 1e9
        return self.good / seconds if seconds > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON, which `from_json` takes."""
        return {
            "by_phase": [each.to_text() for each in self.by_phase],
            "from_send": self.from_send.to_text(),
            "status": {str(status): count for status, count in self.status.items()},
            "counts": [self.events, self.good, self.starved, self.first_sent_ns, self.last_done_ns],
        }

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> Self:
        """Make the outcome that `to_json` returned."""
        return cls(
            [Latencies.from_text(text) for text in said["by_phase"]],
            Latencies.from_text(said["from_send"]),
            Counter({int(status): count for status, count in said["status"].items()}),
            *said["counts"],
        )


def merge(outcomes: Iterable[Outcome]) -> Outcome:
    """Merge the outcomes of the parts of one schedule, which ran side by side."""
    parts = list(outcomes)
    whole = Outcome([merged(each) for each in zip(*(part.by_phase for part in parts), strict=True)])
    whole.from_send = merged(part.from_send for part in parts)
    for part in parts:
        whole.status.update(part.status)
        whole.events, whole.good = whole.events + part.events, whole.good + part.good
        whole.starved += part.starved
    whole.first_sent_ns = min((part.first_sent_ns for part in parts if part.first_sent_ns), default=0)
    whole.last_done_ns = max((part.last_done_ns for part in parts), default=0)
    return whole
