"""A stream of a real engine, as the oracle's steps see it: with restarts, crashes, a clock, and warming on demand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from railgun.catalog.changes import Warm
from railgun.engine.engine import Engine
from railgun.task.settings import TaskSettings
from tests.oracle.steps import Reply

# Caches that hold next to nothing, chunks and batches that end all the time, checkpoints whenever one can be.
SMALLEST = TaskSettings(
    row_cache_bytes=1 << 16,
    page_cache_bytes=3_551_232,
    chunk_cache_bytes=1 << 16,
    block_cache_bytes=1 << 20,
    chunk_events=16,
    segment_bytes=1 << 12,
    batch_events_max=7,
    crossings_max=64,
    checkpoint_interval_s=0.0,
    trickle_bytes=256,
    fill_rows_max=3,
)

_NO_CLOCK_MS = 2**63


def as_reply(values: Mapping[str, Any]) -> Reply:
    """An answer to a value query in the form that the oracle gives it."""
    found = {name: each for name, each in values.items() if name not in ("key", "as_of")}
    clocks = {partitioner: place["time"] for partitioner, place in values["as_of"].items()}
    return found | {"id": None, "time": None, "as_of": clocks}


class EnginePlayer:
    """Plays steps on `stream` of the engine in a folder."""

    def __init__(self, folder: Path, stream: str, settings: TaskSettings | None = None) -> None:
        self.folder, self.stream, self._settings = folder, stream, settings
        self.clock_ms: int | None = None
        self._held: set[str] = set()
        self._holds_all = False
        self.engine = self._open()

    def _open(self) -> Engine:
        return Engine(
            self.folder,
            durability="os",
            settings=self._settings,
            now_ms=self._now_ms,
            may_warm=self._may_warm,
        )

    def _now_ms(self) -> int:
        return _NO_CLOCK_MS if self.clock_ms is None else self.clock_ms

    def _may_warm(self, warm: Warm) -> bool:
        return not self._holds_all and warm.name not in self._held

    def apply(self, definitions: str) -> None:
        self.engine.apply(definitions)

    def score(self, event: Mapping[str, Any]) -> Reply:
        return self.engine.score(self.stream, event)

    def values(self, key: Mapping[str, Any], names: Sequence[str] | None = None) -> Reply:
        (found,) = self.engine.values(self.stream, [key], names)
        return as_reply(found)

    def add_metrics(self, sql: str, *, warm: bool = True) -> object:
        if warm:
            return self.engine.add_metrics(self.stream, sql)
        self._holds_all = True
        names = self.engine.add_metrics(self.stream, sql, wait=False)
        self._held.update(names)
        self._holds_all = False
        return names

    def warm(self, name: str) -> None:
        self._held.discard(name)
        self.engine.wait_until_warm(self.stream)

    def drop_metric(self, name: str) -> None:
        self.engine.drop_metric(self.stream, name)

    def add_field(self, name: str, declared: Any) -> None:
        self.engine.add_field(self.stream, name, declared)

    def place_field(self, name: str, declared: Any) -> None:
        self.engine.evolve(self.stream, {"fields": {name: declared}})

    def drop_field(self, name: str) -> None:
        self.engine.drop_field(self.stream, name)

    def set_lateness(self, duration: str) -> None:
        self.engine.set_lateness(self.stream, duration)

    def set_retention(self, duration: str) -> None:
        self.engine.set_retention(self.stream, duration)

    def set_clock(self, clock_ms: int) -> None:
        self.clock_ms = clock_ms

    def restart(self, *, crash: bool) -> None:
        """Begin anew on the same data; after a crash without the checkpoint that closing takes."""
        self.engine.close(checkpoint=not crash)
        self.engine = self._open()

    def close(self) -> None:
        self.engine.close()
