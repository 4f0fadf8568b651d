"""Has an engine score events, and returns what each stage of that takes, beside the least that it could be."""

import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import msgspec
import pyarrow as pa

from bench.keeping import Figures, spread
from bench.load.lines import payment_lines
from bench.payments import BLOCK_EVENTS, blocks
from bench.stages.least import least_ns
from bench.stages.stopwatch import STAGES, Stopwatch
from bench.unit_cases import THROUGHPUT
from railgun import Engine
from railgun.ingest.replies import replies_of

_STREAM, _WORKLOAD = "payments", THROUGHPUT["payments_1x3"]
_RECORDS = 2_048
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the bench. batch: how many events come at a time.  events: of a run, at scale 1."""

    name: str
    batch: int
    events: int


PARTS = {part.name: part for part in (Part("batches", 2_048, 400_000), Part("single", 1, 20_000))}


def measured(part: Part, scale: float, runs: int) -> Figures:
    """Return the processor time of each stage in ns per event, `…_ns`, and the least that it could be, `…_bound_ns`."""
    events = max(4 * part.batch, round(part.events * scale))
    with (
        tempfile.TemporaryDirectory(prefix="railgun-bench-stages-") as folder,
        Engine(Path(folder) / "data", durability="os") as engine,
    ):
        first = _fill(engine)
        found: dict[str, list[float]] = defaultdict(list)
        for _ in range(runs):
            lines = payment_lines(_WORKLOAD.payments, first, events).buffer.splitlines()
            first += events
            reply_bytes = _score(engine, lines, part.batch, found)
        texts = sum(map(len, lines)) / events
        records = _record_bytes(engine, lines[:_RECORDS])
    bounds = least_ns(texts, records, reply_bytes / events, _WORKLOAD.payments.cards)
    figures: Figures = {}
    for stage in (*STAGES, "outside_stages", "own_thread", "other_threads", "whole"):
        figures |= spread(f"{stage}_ns", found[stage])
        if stage in bounds:
            figures[f"{stage}_bound_ns"] = bounds[stage]
    return {**figures, "measured_events": float(events)}


def _fill(engine: Engine) -> int:
    """Fill the window. Returns how many events that took."""
    filling = -(-_WORKLOAD.warm_up // BLOCK_EVENTS)
    engine.apply(_WORKLOAD.definitions)
    engine.score_table(_STREAM, pa.Table.from_batches(list(islice(blocks(_WORKLOAD.payments), filling))))
    return filling * BLOCK_EVENTS


def _score(engine: Engine, lines: Sequence[bytes], batch: int, found: dict[str, list[float]]) -> int:
    """Score events, and note the processor time of stages, of all threads. Returns the bytes of replies."""
    stopwatch, reply_bytes = Stopwatch(), 0
    write = stopwatch.timed(lambda scored: _encode(replies_of(scored, None)), "write_json")
    with stopwatch.watching():
        begun_ns, own_begun_ns = time.process_time_ns(), time.thread_time_ns()
        for at in range(0, len(lines), batch):
            reply_bytes += len(write(engine.score_each(_STREAM, lines[at : at + batch])))
        own_ns, whole_ns = time.thread_time_ns() - own_begun_ns, time.process_time_ns() - begun_ns
    for stage in STAGES:
        found[stage].append(stopwatch.ns[stage] / len(lines))
    found["outside_stages"].append((own_ns - sum(stopwatch.ns.values())) / len(lines))
    found["own_thread"].append(own_ns / len(lines))
    found["other_threads"].append((whole_ns - own_ns) / len(lines))
    found["whole"].append(whole_ns / len(lines))
    return reply_bytes


def _record_bytes(engine: Engine, lines: Sequence[bytes]) -> float:
    """Return the mean bytes of the records of events. They were scored before, so these are duplicates."""
    records = engine.score_each(_STREAM, lines).accepted.records()
    return float(records.offsets[-1] - records.offsets[0]) / len(records)
