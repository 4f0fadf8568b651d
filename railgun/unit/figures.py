"""Counts the records that a unit takes and the replies that it sends, and times each stage of a batch.

`Sending` and the tasks' sinks count; telemetry.py shows the figures as metrics. It does no I/O.
"""

from collections import Counter
from dataclasses import dataclass, field

from railgun.telemetry.recording import BATCH_BOUNDS, SECONDS_BOUNDS, Buckets

UNIT_STAGES = ("waiting", "process", "reply")
"""The stages that are timed. "waiting": from when the broker got the first record of a batch until the unit takes it.
"process": until the task has processed the batch and its replies are encoded and handed over. "reply": until the
broker has acknowledged a reply record."""


@dataclass(slots=True, eq=False)
class StreamFigures:
    """The figures of one stream.

    records: how many records were taken, by partitioner.
    batches: a distribution of how many records were taken together.
    stages: by stage of a batch, a distribution of the seconds that it took.
    """

    records: Counter[str] = field(default_factory=Counter)
    batches: Buckets = field(default_factory=lambda: Buckets(BATCH_BOUNDS))
    stages: dict[str, Buckets] = field(
        default_factory=lambda: {stage: Buckets(SECONDS_BOUNDS) for stage in UNIT_STAGES}
    )


class UnitFigures:
    """The figures of one unit. Each figure is written by one thread, and reading needs no lock.

    rebalances: how often the unit's tasks were changed.
    replies, query_answers: how many reply records, and answers to value queries, it has sent.
    dropped: how many replies it has given up.
    """

    def __init__(self) -> None:
        self._streams: dict[str, StreamFigures] = {}
        self.rebalances = 0
        self.replies, self.dropped, self.query_answers = 0, 0, 0

    def stream(self, name: str) -> StreamFigures:
        """Return the figures of a stream. They are created on the first call."""
        found = self._streams.get(name)
        return self._streams.setdefault(name, StreamFigures()) if found is None else found

    def streams(self) -> list[tuple[str, StreamFigures]]:
        """Return the present figures of all streams, by name."""
        return sorted(self._streams.copy().items(), key=lambda each: each[0])
