"""What a unit notes as it happens: records taken, where the time of a batch goes, how often its share has changed."""

from collections import Counter
from dataclasses import dataclass, field

from railgun.telemetry.recording import BATCH_BOUNDS, SECONDS_BOUNDS, Buckets

UNIT_STAGES = ("waiting", "process", "reply")
"""From the broker's clock at the first record of a batch until it is taken; through its task, replies encoded and
handed over; until the broker has acknowledged a reply record."""


@dataclass(slots=True, eq=False)
class StreamFigures:
    """Of one stream. records: taken, by partitioner.  batches: records taken together."""

    records: Counter[str] = field(default_factory=Counter)
    batches: Buckets = field(default_factory=lambda: Buckets(BATCH_BOUNDS))
    stages: dict[str, Buckets] = field(
        default_factory=lambda: {stage: Buckets(SECONDS_BOUNDS) for stage in UNIT_STAGES}
    )


class UnitFigures:
    """Of one unit. Each figure is written by one thread; reading needs no lock."""

    def __init__(self) -> None:
        self._streams: dict[str, StreamFigures] = {}
        self.rebalances = 0
        self.replies, self.dropped = 0, 0

    def stream(self, name: str) -> StreamFigures:
        """The notes of a stream, made when they are first asked for."""
        found = self._streams.get(name)
        return self._streams.setdefault(name, StreamFigures()) if found is None else found

    def streams(self) -> list[tuple[str, StreamFigures]]:
        """All of them, by name, as they are now."""
        return sorted(self._streams.copy().items(), key=lambda each: each[0])
