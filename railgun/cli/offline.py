"""Scoring files: read and checked in one thread, scored in this one, written in a third."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from railgun.catalog.model import MetricDefinition, StreamDefinition
from railgun.cli.pipeline import Ahead, Behind
from railgun.files.reading import EventFiles
from railgun.files.writing import ResultFile
from railgun.ingest.file_events import CheckedBlock, EventChecks, RowRefusedError
from railgun.language.types import Kind
from railgun.wire.columns import EventColumns

_DEPTH = 3
_SHOWN_REFUSALS = 3


class Scorer(Protocol):
    """What scores events: `railgun.engine.offline.OfflineRun`."""

    def score(self, events: EventColumns) -> pa.Table:
        """A row per event, in order: the id, a column per metric, late_ and duplicate_ per partitioner."""

    def close(self) -> None:
        """Let go of everything."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to do. refused rows stop it unless skip_bad, which leaves nulls in their place."""

    stream: StreamDefinition
    metrics: Sequence[MetricDefinition]
    events: Sequence[Path]
    out: Path
    skip_bad: bool = False


@dataclass(slots=True)
class Summary:
    """What was done. events: rows read, refused too.  refusals: the first few.  ignored: columns by file."""

    events: int = 0
    refused: int = 0
    seconds: float = 0.0
    refusals: list[str] = field(default_factory=list)
    ignored: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def events_per_s(self) -> float:
        """Throughput, reading and writing included."""
        return self.events / self.seconds if self.seconds else 0.0

    def as_json(self, out: Path) -> dict[str, Any]:
        """For programs."""
        return {
            "events": self.events,
            "refused": self.refused,
            "seconds": round(self.seconds, 3),
            "events_per_s": round(self.events_per_s),
            "out": str(out),
            "ignored": {file: list(columns) for file, columns in self.ignored.items()},
            "refusals": self.refusals,
        }


class Watch(Protocol):
    """Whoever shows how far a run has come."""

    def start(self, size_bytes: int, rows: int | None) -> None:
        """The files' bytes, and rows where they are known."""

    def advance(self, rows: int, read_bytes: int) -> None:
        """So many more rows are done; the files have been read up to a byte."""


def run(job: Job, make_scorer: Callable[[], Scorer], watch: Watch) -> Summary:
    """Score every event of the files. Raises FileError, RowRefusedError, OSError, and what scoring raises.

    The file of results appears once everything is in it.
    """
    began = time.perf_counter()
    schema, summary = job.stream.schema(1), Summary()
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
    """Count a block; a refused row ends the run unless bad ones are skipped."""
    summary.events += block.rows
    if block.refused is None:
        return
    if not job.skip_bad:
        raise RowRefusedError(
            block.refused.file,
            block.refused.row or 0,
            block.refused.field,
            f"{block.refused.reason}; mend the row, or leave out such rows with --skip-bad",
        )
    summary.refused += int(block.bad.sum())
    if len(summary.refusals) < _SHOWN_REFUSALS:
        summary.refusals.append(str(block.refused))


def _rows(scored: pa.Table, block: CheckedBlock, id_name: str) -> pa.Table:
    """The scored rows with rows of nulls, but for ids, in the places of bad ones."""
    if block.refused is None:
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
