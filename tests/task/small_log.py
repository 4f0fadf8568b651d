"""A short log of one task, written by hand: its stream, its events, and a task that reads it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from railgun.catalog.changes import AddMetric, Change, PutStream, change_to_json
from railgun.catalog.definitions import parse_definitions
from railgun.history.open_records import log_reader_with_history
from railgun.task.environment import TaskEnvironment
from railgun.task.meta import TaskMeta, encode_meta
from railgun.task.processor import TaskProcessor
from railgun.task.recovery import open_task
from railgun.task.replies import Replies
from railgun.task.settings import TaskIdentity, TaskSettings
from railgun.wire.control_records import encode_control
from railgun.wire.encode import encode_event
from railgun.wire.records import Records
from reservoir.cursors.cursor import FillSlice
from reservoir.files import DiskFiles

IDENTITY = TaskIdentity("s", "k", 0, bytes(16))


@dataclass
class SmallLog:
    """Records from offset 0 on. read_from: the offsets at which a recovery began to read it."""

    definitions: str
    records: list[bytes] = field(default_factory=list)
    read_from: list[int] = field(default_factory=list)
    read_records: int = 0

    def __post_init__(self) -> None:
        definitions = parse_definitions(self.definitions)
        self.stream = definitions.streams["s"]
        changes: list[Change] = [PutStream(1, self.stream, 1)]
        changes += [AddMetric(place, metric) for place, metric in enumerate(definitions.metrics, 2)]
        self.records += [encode_control(change_to_json(change)) for change in changes]

    def event(self, id_: str, time_ms: int, key: str = "a") -> int:
        """Append an event; its offset."""
        self.records.append(encode_event(1, id_, time_ms, [id_, time_ms, key]))
        return len(self.records) - 1

    def read(self, first: int, end: int) -> Iterable[tuple[int, Records]]:
        """What a recovery reads."""
        self.read_from.append(first)
        self.read_records += end - first
        yield first, Records.of(self.records[first:end])

    def open(
        self, folder: Path, settings: TaskSettings, *, log_start: int = 0, **clocks: Any
    ) -> TaskProcessor:
        """The task as its last checkpoint left it. clocks: `now` and `used_s` of its environment."""
        environment = TaskEnvironment(**clocks)
        return open_task(
            folder,
            IDENTITY,
            DiskFiles(),
            log_reader_with_history(folder, self.read),
            settings,
            log_start=log_start,
            environment=environment,
        )

    def feed(self, task: TaskProcessor, batch: int = 64) -> list[bool]:
        """Let a task process what it has not seen; of each event, whether it was a duplicate."""
        duplicates: list[bool] = []

        def deliver(replies: Replies) -> None:
            duplicates.extend(bool(each) for each in replies.duplicate[: replies.n])

        while task.position < len(self.records):
            first = task.position
            task.process(Records.of(self.records[first : first + batch]), first, deliver)
            task.work()
        return duplicates


def stream_text(settings: Sequence[str] = (), window: str = "SLIDING 1 SECOND") -> str:
    """Definitions of stream `s`: id `i`, time `t`, key `k`, and a count over a window."""
    return "\n".join(
        [
            "[streams.s]",
            'time = "t"',
            'id = "i"',
            'partitioners = ["k"]',
            *settings,
            "[streams.s.fields]",
            'i = "string"',
            't = "timestamp"',
            'k = "string"',
            "[[metrics]]",
            f'sql = "SELECT count(*) AS n FROM s GROUP BY k OVER {window}"',
        ]
    )


def keep_no_open_rows(patch: pytest.MonkeyPatch) -> None:
    """Checkpoints are from now on as an earlier release writes them: their open rows are in the log alone."""

    def encode(meta: TaskMeta) -> bytes:
        return encode_meta(msgspec.structs.replace(meta, saved_rows=None))

    patch.setattr("railgun.task.checkpoints.encode_meta", encode)


def rows_filled(task: TaskProcessor, patch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each slice of a fill reads from now on."""
    read: list[int] = []
    fill_next = task.reservoir.fill_next

    def counted(*asked: Any, ready_only: bool) -> FillSlice:
        found = fill_next(*asked, ready_only=ready_only)
        read.append(found.count)
        return found

    patch.setattr(task.reservoir, "fill_next", counted)
    return read
