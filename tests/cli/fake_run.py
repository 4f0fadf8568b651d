"""A stand-in for the engine: counts events, and can be slow or fail."""

import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from railgun.catalog.model import MetricDefinition, StreamDefinition
from railgun.language.derive import ResolvedDerived
from railgun.wire.columns import EventColumns

DEFINITIONS = """
[streams.payments]
time = "ts"
id = "id"
partitioners = ["card"]

[streams.payments.fields]
id = "string"
ts = "timestamp"
card = "string"

[[metrics]]
sql = "SELECT count(*) AS n FROM payments GROUP BY card OVER INFINITE"
"""
HEADER = "id,ts,card\n"


class FakeRun:
    """Answers each event with how many there were before it, itself included."""

    delay_s = 0.0
    failing_after: int | None = None

    def __init__(
        self,
        stream: StreamDefinition,
        metrics: Sequence[MetricDefinition],
        folder: Path | None = None,
        derived: Sequence[ResolvedDerived] = (),
    ) -> None:
        self.stream, self.metrics, self.folder = stream, metrics, folder
        self.events = 0
        self.is_closed = False
        FakeRun.last = self

    def score(self, events: EventColumns) -> pa.Table:
        time.sleep(self.delay_s)
        if self.failing_after is not None and self.events > self.failing_after:
            raise OSError(28, "No space left on device", "segment")
        first, n = self.events, len(events)
        self.events += n
        columns: dict[str, pa.Array] = {
            self.stream.id or "id": pa.array([events.ids.string(row) for row in range(n)], pa.string())
        }
        for metric in self.metrics:
            columns[metric.name] = pa.array(range(first + 1, first + n + 1), pa.int64())
        for name in self.stream.partitioners:
            columns[f"late_{name}"] = pa.nulls(n, pa.string())
            columns[f"duplicate_{name}"] = pa.array([False] * n, pa.bool_())
        return pa.table(columns)

    def close(self) -> None:
        self.is_closed = True

    last: "FakeRun"
