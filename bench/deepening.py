"""What live events feel of a deepening: Spark's job and the taking over beside 500 events/s, on the same machine.

    python -m bench.deepening [--only NAME ...] [--runs N] [--scale F]

Prints a line per figure with the median and the spread over the runs, and at the end one line of JSON.
docs/measuring.md says what each figure is.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.children import ChildFailedError
from bench.command_line import Case, measure
from bench.http import Scaled
from bench.http_run import Target
from bench.kafka import running_broker
from bench.payments import blocks
from bench.report import Report
from bench.service import Service
from bench.unit_cases import THROUGHPUT

_DAYS_MS = 7 * 24 * 3_600_000
_HISTORY_EVENTS, _OWN_EVENTS = 1_000_000, 300_000
_RATE_PER_S, _BEFORE_S, _REST_S = 500, 40.0, 240.0
_SETTLED_S = 15.0
_WORKLOAD = replace(THROUGHPUT["payments_1x3"], window_ms=_DAYS_MS)
# The last half of the cores are for the job, as docs/spark.md advises for a job beside a server.
_CORES = sorted(os.sched_getaffinity(0))
_IN_IDLE_TIME = ["taskset", "--cpu-list", ",".join(map(str, _CORES[len(_CORES) // 2 :]))]
_IN_IDLE_TIME += ["chrt", "--idle", "0", "nice", "-n", "19"]


@contextmanager
def _embedded(folder: Path) -> Iterator[tuple[Service, list[str]]]:
    """Yield a server over the embedded engine, and the options by which the job finds it."""
    with Service(folder, _WORKLOAD.definitions, "os") as service:
        service.start()
        yield service, ["--url", f"http://{service.host}:{service.port}"]
        service.stop()


@contextmanager
def _on_kafka(folder: Path) -> Iterator[tuple[Service, list[str]]]:
    """Yield a front-end with a broker and a node of one unit, and the options by which the job finds them."""
    with running_broker() as broker, Service(folder, _WORKLOAD.definitions, "os", broker) as service:
        service.start()
        yield service, ["--broker", broker]
        service.stop()


def _deepened(
    prefix: str, served: Callable[[Path], AbstractContextManager[tuple[Service, list[str]]]]
) -> Case:
    """Measure single events before a deepening, beside it, and after it."""

    def deepened(report: Report) -> None:
        scaled = Scaled(report.scale)
        found: dict[str, list[float]] = {}
        for _ in range(report.runs):
            with tempfile.TemporaryDirectory(prefix="railgun-bench-") as name:
                folder, events = Path(name), scaled.events(_HISTORY_EVENTS)
                history = _history(folder, events)
                with served(folder) as (service, where):
                    target = Target(service, _WORKLOAD.payments, events)
                    target.bulk(scaled.events(_OWN_EVENTS), connections=1)
                    # Written before the first figure, so that the writes of the bulk load do not disturb it.
                    os.sync()
                    time.sleep(_SETTLED_S)
                    beside = target.while_doing(
                        partial(_job, folder, history, where),
                        _RATE_PER_S,
                        scaled.seconds(_BEFORE_S, 20.0),
                        scaled.seconds(_REST_S, 150.0),
                    )
            for key, value in (
                ("deepening_s", beside.seconds),
                ("deepening_p999_ratio", beside.during_ms / beside.before_ms),
                ("p999_ms_before_deepening", beside.before_ms),
                ("p999_ms_deepening", beside.during_ms),
                ("p999_ms_after_deepening", beside.after_ms),
                ("greatest_ms_deepening", beside.greatest_ms),
            ):
                found.setdefault(f"{prefix}{key}", []).append(value)
        for key, values in found.items():
            report.note(key, values, 3)

    return deepened


def _history(folder: Path, events: int) -> Path:
    """Write a file with the events before the stream's first one, and return its path."""
    table = pa.Table.from_batches(list(blocks(replace(_WORKLOAD.payments, events=events))))
    pq.write_table(table, folder / "history.parquet", row_group_size=250_000)
    return folder / "history.parquet"


def _job(folder: Path, history: Path, where: list[str]) -> None:
    command = [*_IN_IDLE_TIME, sys.executable, "-m", "railgun", "backfill"]
    command += [str(folder / "definitions.toml"), str(history), "--data", str(folder / "data"), "--deepen"]
    done = subprocess.run([*command, *where], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ChildFailedError(f"railgun backfill: code {done.returncode}: {done.stderr[-2000:]}")


CASES: dict[str, Case] = {
    "deepening": _deepened("", _embedded),
    "deepening_kafka": _deepened("kafka_", _on_kafka),
}


if __name__ == "__main__":
    sys.exit(measure("deepening", __doc__, CASES))
