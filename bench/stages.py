"""Where the time of an event goes: the processor time of each stage of an engine, beside the least that it could be.

    python -m bench.stages [--only batches single] [--runs N] [--scale F]

An engine on a folder of its own scores payments as `railgun serve` has it done, from the text of each event to its
reply as JSON. Its window is full, so that as many events leave it as arrive. `batches`: 2,048 events at a time.
`single`: one at a time.

The stages are methods that pass a batch on. Each is timed by the processor time of the thread that scores, without the
stages that it calls. Other threads, which write the log and checkpoints and read ahead, are a line of their own. The
least is what the stage cannot do without, measured here: reading its bytes once, copying them once, or changing a row
of state wherever it lies. docs/benchmarks.md says which. The last line is JSON.
"""

import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from bench.command_line import Case, measure
from bench.load.lines import payment_lines
from bench.payments import BLOCK_EVENTS, blocks
from bench.report import Report
from bench.unit_cases import ROW_BYTES, THROUGHPUT
from railgun import Engine
from railgun.engine.live_stream import LiveStream
from railgun.engine.stream_hosts import StreamHosts
from railgun.ingest.accepted import AcceptedBatch
from railgun.ingest.answers import Answers
from railgun.ingest.intake import Intake
from railgun.ingest.replies import replies_of
from railgun.messaging.embedded.log import EmbeddedLog
from railgun.task.admission import Admission
from railgun.task.execution import Execution
from railgun.task.processor import TaskProcessor
from reservoir.reservoir import Reservoir

_STREAM, _WORKLOAD = "payments", THROUGHPUT["payments_1x3"]
_BATCH, _BATCHED_EVENTS, _SINGLE_EVENTS = 2_048, 400_000, 20_000
_METHODS: Sequence[tuple[type, str, str]] = (
    (Intake, "take", "read_json"),
    (AcceptedBatch, "task_batches", "make_records"),
    (EmbeddedLog, "submit", "hand_to_log"),
    (TaskProcessor, "_read", "decode_records"),
    (Admission, "admit", "find_duplicates"),
    (TaskProcessor, "append", "append_to_reservoir"),
    (Reservoir, "advance", "move_edges"),
    (Execution, "records", "update_state"),
    (Execution, "drain", "update_state"),
    (TaskProcessor, "_replies", "collect_results"),
    (Answers, "take", "collect_results"),
    (TaskProcessor, "_settle", "seal_chunks"),
    (TaskProcessor, "process", "rest_of_task"),
    (StreamHosts, "work", "background_work"),
    (LiveStream, "score_each", "rest_of_stream"),
    (Engine, "score_each", "rest_of_engine"),
)
STAGES = (*dict.fromkeys(stage for _, _, stage in _METHODS), "write_json")
# For the least: bytes that no cache holds, ids that are remembered, words of three results with their notes.
_MOVED_BYTES, _CHANGED, _TRIES = 64 << 20, 1 << 18, 5
_ID_BYTES, _REMEMBERED_IDS, _RESULT_BYTES = 16, 1 << 20, 3 * 9
_encode = msgspec.json.Encoder().encode


class Stopwatch:
    """Sums the processor time of the thread that made it by stage, in ns. A stage's time is without those inside it."""

    def __init__(self) -> None:
        self.ns: dict[str, int] = defaultdict(int)
        self._thread = threading.get_ident()
        # By stage that is under way, the innermost last: the time of the stages inside it.
        self._inside: list[int] = []

    def timed(self, call: Callable[..., Any], stage: str) -> Callable[..., Any]:
        """Return a function that does what `call` does, and counts its time."""

        def counting(*arguments: Any, **named: Any) -> Any:
            if threading.get_ident() != self._thread:
                return call(*arguments, **named)
            self._inside.append(0)
            begun_ns = time.thread_time_ns()
            try:
                return call(*arguments, **named)
            finally:
                took_ns = time.thread_time_ns() - begun_ns
                self.ns[stage] += took_ns - self._inside.pop()
                if self._inside:
                    self._inside[-1] += took_ns

        return counting

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Time the stages while this is entered."""
        before = [(owner, name, getattr(owner, name)) for owner, name, _ in _METHODS]
        try:
            for (owner, name, stage), (_, _, call) in zip(_METHODS, before, strict=True):
                setattr(owner, name, self.timed(call, stage))
            yield
        finally:
            for owner, name, call in before:
                setattr(owner, name, call)


class Least:
    """What stages cannot do without, on this machine: the time of moving their bytes, in ns per event.

    text, record, reply: bytes of an event's text, its record and its reply as JSON.
    """

    def __init__(self, text: float, record: float, reply: float) -> None:
        read, copy = _read_ns_per_byte(), _copy_ns_per_byte()
        self.ns = {
            "read_json": text * read,
            "make_records": record * copy,
            "hand_to_log": record * copy,
            "decode_records": record * read,
            "find_duplicates": _change_ns(_ID_BYTES, _REMEMBERED_IDS),
            "append_to_reservoir": record * copy,
            # The event that comes changes a row, and so does the one that leaves the window.
            "update_state": 2 * _change_ns(ROW_BYTES, _WORKLOAD.payments.cards),
            "collect_results": _RESULT_BYTES * copy,
            "write_json": reply * copy,
        }


def _best_ns(work: Callable[[], object]) -> float:
    """Return the least processor time of some runs, after one that is not counted."""
    found = []
    for _ in range(_TRIES + 1):
        begun_ns = time.thread_time_ns()
        work()
        found.append(time.thread_time_ns() - begun_ns)
    return min(found[1:])


def _read_ns_per_byte() -> float:
    words = np.ones(_MOVED_BYTES // 8, np.uint64)
    return _best_ns(lambda: np.bitwise_xor.reduce(words)) / _MOVED_BYTES


def _copy_ns_per_byte() -> float:
    source = np.ones(_MOVED_BYTES, np.uint8)
    target = np.zeros(_MOVED_BYTES, np.uint8)
    return _best_ns(lambda: np.copyto(target, source)) / _MOVED_BYTES


def _change_ns(size_bytes: int, rows: int) -> float:
    """Return how long it takes to read and write a row, of as many, that nobody has looked at lately."""
    table = np.zeros((rows, size_bytes // 8), np.uint64)
    places = np.random.default_rng(1).integers(0, rows, _CHANGED)

    def change() -> None:
        table[places] = table[places]

    return _best_ns(change) / _CHANGED


def _stages_of(report: Report, name: str, batch: int, events: int) -> None:
    events = max(4 * batch, round(events * report.scale))
    with tempfile.TemporaryDirectory(prefix="railgun-bench-stages-") as folder:
        payments = _WORKLOAD.payments
        filling = -(-_WORKLOAD.warm_up // BLOCK_EVENTS)
        with Engine(Path(folder) / "data", durability="os") as engine:
            engine.apply(_WORKLOAD.definitions)
            engine.score_table(_STREAM, pa.Table.from_batches(list(islice(blocks(payments), filling))))
            found: dict[str, list[float]] = defaultdict(list)
            first, least = filling * BLOCK_EVENTS, None
            for _ in range(report.runs):
                lines = payment_lines(payments, first, events).buffer.splitlines()
                first += events
                stopwatch, reply_bytes = _scored(engine, lines, batch, found)
                for stage in STAGES:
                    found[stage].append(stopwatch.ns[stage] / events)
                found["own_thread"].append(sum(stopwatch.ns.values()) / events)
                found["other_threads"].append(found["whole"][-1] - found["own_thread"][-1])
                if least is None:
                    texts = sum(map(len, lines)) / events
                    least = Least(texts, _record_bytes(engine, lines[:_BATCH]), reply_bytes / events)
    assert least is not None
    for key in (*STAGES, "own_thread", "other_threads", "whole"):
        floor = least.ns.get(key)
        remark = "" if floor is None else f"  least {floor:,.1f}"
        report.note(f"{name}_{key}_ns", found[key], remark=remark)
        if floor is not None:
            report.figures[f"{name}_{key}_least_ns"] = round(floor, 1)


def _scored(
    engine: Engine, lines: Sequence[bytes], batch: int, found: dict[str, list[float]]
) -> tuple[Stopwatch, int]:
    """Score events, and note the processor time of the whole process. Return the stages and the bytes of replies."""
    stopwatch, reply_bytes = Stopwatch(), 0
    write = stopwatch.timed(lambda scored: _encode(replies_of(scored, None)), "write_json")
    with stopwatch.watching():
        begun_ns = time.process_time_ns()
        for at in range(0, len(lines), batch):
            reply_bytes += len(write(engine.score_each(_STREAM, lines[at : at + batch])))
        found["whole"].append((time.process_time_ns() - begun_ns) / len(lines))
    return stopwatch, reply_bytes


def _record_bytes(engine: Engine, lines: Sequence[bytes]) -> float:
    """Return the mean bytes of the records of events. They were scored before, so these are duplicates."""
    records = engine.score_each(_STREAM, lines).accepted.records()
    return float(records.offsets[-1] - records.offsets[0]) / len(records)


def _batches(report: Report) -> None:
    _stages_of(report, "batches", _BATCH, _BATCHED_EVENTS)


def _single(report: Report) -> None:
    _stages_of(report, "single", 1, _SINGLE_EVENTS)


CASES: dict[str, Case] = {"batches": _batches, "single": _single}


if __name__ == "__main__":
    sys.exit(measure("stages", __doc__, CASES))
