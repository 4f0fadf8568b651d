"""How fast one task is: raw internal records in, encoded replies out, everything on (reservoir, expiry, checkpoints).

    python -m bench.unit [--only NAME ...] [--runs N] [--scale F]

Each figure is measured in a steady state, with as many events leaving windows as arrive.  Prints one line per
figure with the median and the spread over the runs, and at the end one line of JSON.
"""

import argparse
import json
import shutil
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from bench.unit_cases import CASES, Workload, make_records
from railgun.catalog.changes import AddMetric, Change, PutStream, change_to_json
from railgun.catalog.definitions import parse_definitions
from railgun.task.processor import TaskIdentity, TaskProcessor
from railgun.task.recovery import open_task
from railgun.task.replies import Replies
from railgun.task.settings import TaskSettings
from railgun.wire.encode import encode_control
from railgun.wire.reply import ReplyEncoder
from reservoir.files import DiskFiles


@dataclass(slots=True)
class Answering:
    """Encodes replies as a processor unit would, and counts their bytes."""

    task: TaskProcessor
    encoder: ReplyEncoder | None = None
    size_bytes: int = 0

    def __call__(self, replies: Replies) -> None:
        if self.encoder is None:
            self.encoder = ReplyEncoder(replies.source(self.task.identity))
        for _, record in replies.encode(self.encoder):
            self.size_bytes += len(record)


def open_with(workload: Workload, folder: Path, settings: TaskSettings) -> tuple[TaskProcessor, int]:
    """A task with the workload's stream and metrics in force; how many records its log has."""
    definitions = parse_definitions(workload.definitions)
    (stream,) = definitions.streams.values()
    task = open_task(
        folder, TaskIdentity(stream.name, "card", 0, bytes(16)), DiskFiles(), lambda a, b: (), settings
    )
    changes: list[Change] = [
        PutStream(1, stream, 1),
        *(AddMetric(2 + i, m) for i, m in enumerate(definitions.metrics)),
    ]
    task.process([encode_control(change_to_json(change)) for change in changes], 0, lambda replies: None)
    return task, len(changes)


def feed(
    task: TaskProcessor, records: Sequence[bytes], batch: int, answer: Callable[[Replies], None]
) -> list[float]:
    """Process records in batches with the background work in between; the seconds of each batch."""
    taken: list[float] = []
    offset = task.position
    for start in range(0, len(records), batch):
        part = records[start : start + batch]
        begun = perf_counter()
        task.process(part, offset, answer)
        task.work()
        taken.append(perf_counter() - begun)
        offset += len(part)
    return taken


def throughput(workload: Workload) -> float:
    """Events per second in a steady state."""
    folder = Path(tempfile.mkdtemp(prefix="railgun-bench-"))
    try:
        task, _ = open_with(workload, folder, workload.settings)
        warm_up, measured = make_records(workload)
        answer = Answering(task)
        feed(task, warm_up, 2048, answer)
        begun = perf_counter()
        feed(task, measured, workload.batch, answer)
        seconds = perf_counter() - begun
        task.close()
        return len(measured) / seconds
    finally:
        shutil.rmtree(folder)


def latency(workload: Workload) -> tuple[float, float]:
    """(p50, p99.9) in ms of a batch, in a steady state."""
    folder = Path(tempfile.mkdtemp(prefix="railgun-bench-"))
    try:
        task, _ = open_with(workload, folder, workload.settings)
        warm_up, measured = make_records(workload)
        answer = Answering(task)
        feed(task, warm_up, 2048, answer)
        taken = np.array(feed(task, measured, workload.batch, answer)) * 1e3
        task.close()
        return float(np.percentile(taken, 50)), float(np.percentile(taken, 99.9))
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Run the cases named, print their figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", default=None, choices=sorted(CASES), help="figures to measure")
    parser.add_argument("--runs", type=int, default=3, help="runs of each (default 3)")
    parser.add_argument("--scale", type=float, default=1.0, help="events, as a multiple of the default")
    arguments = parser.parse_args()
    figures: dict[str, float] = {}
    for name in arguments.only or CASES:
        workload = CASES[name].scaled(arguments.scale)
        if workload.batch == 1:
            found = [latency(workload) for _ in range(arguments.runs)]
            for key, values in zip(("p50_ms", "p999_ms"), zip(*found)):
                _note(figures, f"{name}_{key}", values, 4)
        else:
            _note(figures, name, [throughput(workload) for _ in range(arguments.runs)], 0)
    print(json.dumps({"bench": "unit", "figures": figures}))


def _note(figures: dict[str, float], name: str, values: Sequence[float], digits: int) -> None:
    middle = statistics.median(values)
    figures[name] = round(middle, digits) if digits else round(middle)
    spread = f"{min(values):,.{digits}f} .. {max(values):,.{digits}f}"
    print(f"{name:24} {middle:>14,.{digits}f}   ({spread}, {len(values)} runs)", flush=True)


if __name__ == "__main__":
    main()
