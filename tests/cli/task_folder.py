"""A data folder with one real task in it, checkpointed, for tests of what looks at such folders."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from railgun.catalog.changes import AddMetric, PutStream, change_to_json
from railgun.catalog.definitions import parse_definitions
from railgun.task.processor import TaskIdentity, TaskProcessor
from railgun.task.recovery import open_task
from railgun.task.replies import Replies
from railgun.task.settings import MIB, TaskSettings
from railgun.wire.control_records import encode_control
from railgun.wire.encode import encode_event
from railgun.wire.records import Records
from reservoir.files import DiskFiles

DEFINITIONS = """
[streams.payments]
time = "ts"
id = "id"
partitioners = ["card"]

[streams.payments.fields]
id = "string"
ts = "timestamp"
card = "string"
shop = "string"

[[metrics]]
sql = "SELECT count(*) AS n, count_distinct(shop) AS shops FROM payments GROUP BY card OVER SLIDING 1 HOUR"
[[metrics]]
sql = "SELECT count(*) AS m, last(shop) AS latest FROM payments GROUP BY card, shop OVER INFINITE"
"""
START_MS = 1_700_000_000_000
EVENTS = 400
CONTROLS = 5

SETTINGS = TaskSettings(
    row_cache_bytes=2 * MIB,
    page_cache_bytes=8 * MIB,
    chunk_cache_bytes=1 << 16,
    block_cache_bytes=MIB,
    chunk_events=32,
    segment_bytes=1 << 14,
    checkpoint_interval_s=1e9,
)


def log_of(events: int) -> list[bytes]:
    """The records of the task's log: control records, then so many events, 1 s apart."""
    definitions = parse_definitions(DEFINITIONS)
    stream = replace(definitions.streams["payments"], lateness_ms=0)
    changes = [PutStream(1, stream, 1), *(AddMetric(n, m) for n, m in enumerate(definitions.metrics, 2))]
    return [encode_control(change_to_json(change)) for change in changes] + [
        _payment(n) for n in range(events)
    ]


def open_payments(folder: Path) -> TaskProcessor:
    """The task, from nothing or from its checkpoint."""
    identity = TaskIdentity("payments", "card", 0, bytes(16))

    def read(first: int, end: int) -> Iterator[tuple[int, Records]]:
        yield first, Records.of(log_of(end)[first:end])

    return open_task(folder, identity, DiskFiles(), read, SETTINGS)


def take_events(task: TaskProcessor, events: int) -> None:
    """Let a task process its log up to so many events."""
    task.process(Records.of(log_of(events)[task.position :]), task.position, _drop)


def make_task(data: Path) -> Path:
    """A data folder whose one task has taken EVENTS events and a checkpoint; returns the task's folder."""
    folder = data / "streams" / "payments" / "card" / "0"
    task = open_payments(folder)
    take_events(task, EVENTS)
    task.checkpoints.take()
    task.close()
    return folder


def _payment(n: int) -> bytes:
    ts = START_MS + 1000 * n
    return encode_event(1, f"t{n}", ts, [f"t{n}", ts, f"card{n % 10}", f"shop{n % 3}"])


def _drop(replies: Replies) -> None:
    """Nobody asked."""
