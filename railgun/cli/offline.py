"""Scores files in three threads: one reads and checks them, the caller's scores, one writes the results."""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from railgun.catalog.model import MetricDefinition, StreamDefinition
from railgun.files.reading import EventFiles
from railgun.files.writing import ResultFile
from railgun.ingest.file_events import CheckedBlock, EventChecks, Refusals, RowRefusedError
from railgun.language.types import Kind
from railgun.wire.columns import EventColumns

T = TypeVar("T")

_POLL_S = 0.1


class _End:
    """The end of the items. error: the reason, if anything went wrong."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class Ahead(Generic[T]):
    """Iterates once over items that another thread makes. At most `depth` items wait.

    An error of that thread is raised here, in the item's place. Leaving the `with` block stops the thread. The thread
    begins with the iteration, inside the block, so an interrupt never leaves a thread that nobody stops. A thread that
    still reads while the interpreter ends would crash the process.
    """

    def __init__(self, items: Iterator[T], depth: int) -> None:
        self._items = items
        self._queue: queue.Queue[T | _End] = queue.Queue(depth)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._produce, name="reader", daemon=True)

    def __iter__(self) -> Iterator[T]:
        self._thread.start()
        while True:
            item = self._queue.get()
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item

    def __enter__(self) -> "Ahead[T]":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        # If its start was interrupted, the thread may not be alive yet. It then sees at once that it is to stop.
        if self._thread.is_alive():
            self._thread.join()

    def _produce(self) -> None:
        if self._stopped.is_set():
            return
        error: BaseException | None = None
        try:
            for item in self._items:
                if not self._put(item):
                    return
        except BaseException as raised:  # noqa: BLE001 - it is raised again in the thread that waits
            error = raised
        self._put(_End(error))

    def _put(self, item: T | _End) -> bool:
        """Put an item into the queue. Returns False if nobody wants items any more."""
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=_POLL_S)
            except queue.Full:
                continue
            return True
        return False


class Behind(Generic[T]):
    """Hands items to a function that another thread calls. At most `depth` items wait.

    An error of the function is raised by the next `put`, or on leaving the `with` block, which waits for the last item.
    After an error of the block's own, waiting items are dropped.
    """

    def __init__(self, consume: Callable[[T], None], depth: int) -> None:
        self._consume = consume
        self._queue: queue.Queue[T | None] = queue.Queue(depth)
        self._error: BaseException | None = None
        self._dropping = False
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def put(self, item: T) -> None:
        """Hand over an item. Waits while `depth` items wait. Raises what the function raised."""
        if self._error is not None:
            raise self._error
        self._queue.put(item)

    def __enter__(self) -> "Behind[T]":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._dropping = kind is not None
        self._queue.put(None)
        self._thread.join()
        if kind is None and self._error is not None:
            raise self._error

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            if self._dropping or self._error is not None:
                continue
            try:
                self._consume(item)
            except BaseException as raised:  # noqa: BLE001 - it is raised again in the thread that puts
                self._error = raised


_DEPTH = 3


class Scorer(Protocol):
    """Scores events: `railgun.engine.offline.OfflineRun`."""

    def score(self, events: EventColumns) -> pa.Table:
        """Return a row for each event, in order: id, metrics, and `late_` and `duplicate_` of each partitioner."""

    def close(self) -> None:
        """Close everything."""


@dataclass(frozen=True, slots=True)
class Job:
    """The input and output of a run. skip_bad: refused rows get nulls in the results instead of ending the run."""

    stream: StreamDefinition
    metrics: Sequence[MetricDefinition]
    events: Sequence[Path]
    out: Path
    skip_bad: bool = False


@dataclass(slots=True)
class Summary:
    """What a run did. events: the rows read, with refused ones. ignored: columns by file."""

    events: int = 0
    refusals: Refusals = field(default_factory=Refusals)
    seconds: float = 0.0
    ignored: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def events_per_s(self) -> float:
        """The throughput, reading and writing included."""
        return self.events / self.seconds if self.seconds else 0.0

    def as_json(self, out: Path) -> dict[str, Any]:
        """Return the summary as JSON values for programs."""
        return {
            "events": self.events,
            **self.refusals.as_json(),
            "seconds": round(self.seconds, 3),
            "events_per_s": round(self.events_per_s),
            "out": str(out),
            "ignored": {file: list(columns) for file, columns in self.ignored.items()},
        }


class Watch(Protocol):
    """Shows the progress of a run."""

    def start(self, size_bytes: int, rows: int | None) -> None:
        """Take the size of all files, and the number of rows if it is known."""

    def advance(self, rows: int, read_bytes: int) -> None:
        """Note that more rows are done. read_bytes: how far the files have been read."""


def run(job: Job, make_scorer: Callable[[], Scorer], watch: Watch) -> Summary:
    """Score every event of the files. Raises FileError, RowRefusedError, OSError, and what scoring raises.

    The file of results appears when it is complete.
    """
    began = time.perf_counter()
    schema, summary = job.stream.incoming(1), Summary()
    checks = EventChecks(job.stream, schema, time.time_ns() // 1_000_000)
    with EventFiles(job.events, schema) as files:
        watch.start(files.size_bytes, files.rows)
        scorer = make_scorer()
        try:
            empty = scorer.score(checks.none())
            with (
                ResultFile(job.out, empty.schema, _integers(job.metrics)) as results,
                Behind(results.write, _DEPTH) as writer,
                Ahead(checks.blocks(files), _DEPTH) as blocks,
            ):
                writer.put(empty)
                for block in blocks:
                    _note(block, job, summary)
                    scored = scorer.score(block.events) if len(block.events) else empty
                    writer.put(_rows(scored, block, job.stream.id or "id"))
                    watch.advance(block.rows, block.read_bytes)
        finally:
            scorer.close()
        summary.ignored = files.ignored
    summary.seconds = time.perf_counter() - began
    return summary


def _note(block: CheckedBlock, job: Job, summary: Summary) -> None:
    """Count a block. A refused row ends the run, unless refused rows are skipped."""
    summary.events += block.rows
    first = block.refused.first
    if first is not None and not job.skip_bad:
        why = f"{first.reason}; mend the row, or leave out such rows with --skip-bad"
        raise RowRefusedError(first.file, first.row or 0, first.field, why)
    summary.refusals.add(block.refused)


def _rows(scored: pa.Table, block: CheckedBlock, id_name: str) -> pa.Table:
    """Return the scored rows, with rows of nulls (except ids) in the places of refused ones."""
    if not block.refused.by_reason:
        return scored
    places = np.zeros(block.rows, np.int64)
    places[~block.bad] = np.arange(len(scored))
    table = scored.take(pa.array(places, mask=block.bad))
    column = table.column(id_name).combine_chunks()
    ids = pa.array(block.bad_ids, pa.string()).cast(column.type)
    filled = pa.compute.replace_with_mask(column, pa.array(block.bad), ids)
    return table.set_column(table.column_names.index(id_name), table.schema.field(id_name), filled)


def _integers(metrics: Sequence[MetricDefinition]) -> frozenset[str]:
    return frozenset(metric.name for metric in metrics if metric.resolved.result_type.kind is Kind.INTEGER128)
