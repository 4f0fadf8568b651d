"""What a checkpoint keeps of a task: every later version goes on from it, and names in it tell state apart."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from railgun.catalog.changes import AddMetric, Change, DropMetric, PutStream, Warm, change_to_json
from railgun.catalog.definitions import parse_definitions
from railgun.host.snapshot import snapshot_of
from railgun.state.stored import StoredState
from railgun.task.environment import TaskEnvironment
from railgun.task.errors import CheckpointVersionError
from railgun.task.meta import Crossing, decode_meta
from railgun.task.processor import TaskProcessor
from railgun.task.recovery import open_task, split_meta
from railgun.task.settings import TaskIdentity, TaskSettings
from railgun.wire.control_records import encode_control
from railgun.wire.encode import encode_event
from railgun.wire.records import Records
from reservoir.files import DiskFiles
from tests.catalog.metrics_of_query import metrics_from_sql
from tests.golden.promises import held, kind_of

DEFINITIONS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["k"]
lateness = "2s"
late_policy = "discard"
[streams.s.fields]
id = "string"
ts = "timestamp"
k = "string"
shop = "string"
n = "long"
x = "double"
p = "decimal(12,2)"
ok = "boolean"

[[metrics]]
sql = '''SELECT count(*) AS a, count(n) AS b, sum(x) AS c, sum(n) AS d, sum(p) AS e, avg(x) AS f, stddev(x) AS g,
  var_pop(n) AS h, min(x) AS i, max(shop) AS j, first(ok) AS l, last(shop) AS m, prev(n) AS o, count_distinct(shop) AS q
  FROM s WHERE n > 1 GROUP BY k OVER SLIDING 1 MINUTE'''
[[metrics]]
sql = '''SELECT sum(x) AS r, max(x) AS t, min(shop) AS u, first(shop) AS v, last(x) AS w, count_distinct(n) AS y
  FROM s GROUP BY k, shop OVER TUMBLING 1 HOUR'''
[[metrics]]
sql = '''SELECT sum(x) AS aa, stddev(n) AS ab, max(n) AS ac, min(p) AS ad, first(x) AS ae, prev(shop) AS af
  FROM s GROUP BY k OVER INFINITE DELAYED BY 5 SECONDS'''
"""
LATER = "SELECT sum(x) AS later FROM s WHERE ok GROUP BY k OVER SLIDING 10 SECONDS"
# The places of the record of a checkpoint, in order (`railgun/task/meta.py`).
PLACES = (
    *(
        "version",
        "position",
        "clock_ms",
        "floor_ms",
        "retained_ms",
        "least_ms",
        "chunks",
        "journal",
        "stream",
    ),
    *(
        "schemas",
        "metrics",
        "groups",
        "next_group",
        "cells",
        "pool",
        "inputs",
        "history",
        "leader_epoch",
        "saved_rows",
        "topic_id",
        "gap",
        "begun",
    ),
)
IDENTITY = TaskIdentity("s", "k", 0, bytes(range(16)))
SETTINGS = TaskSettings(chunk_events=16, segment_bytes=1 << 12, checkpoint_interval_s=1e9)
HISTORY = "0123456789abcdef0123456789abcdef"
TOPIC_ID = "uUYRbPk1RhKtbQCvTYIFwA"
GAP = Crossing(1_700_000_000_000, 8, 3, 2)


def log() -> list[bytes]:
    """Metrics of every kind, events of which some came by an input topic, a metric that ends, one that begins."""
    definitions = parse_definitions(DEFINITIONS)
    stream = definitions.streams["s"]
    before: list[Change] = [PutStream(1, stream, 1)]
    before += [AddMetric(place, metric) for place, metric in enumerate(definitions.metrics, 2)]
    places = {metric.name: place for place, metric in enumerate(definitions.metrics, 2)}
    (later,) = metrics_from_sql(LATER, definitions.streams)
    after: list[Change | Warm] = [
        DropMetric(50, "s", "q", places["q"]),
        DropMetric(51, "s", "c", places["c"]),
        AddMetric(52, later),
    ]
    changes = [encode_control(change_to_json(each)) for each in before]
    return [*changes, *events(), *(encode_control(change_to_json(each)) for each in after)]


def events() -> Iterable[bytes]:
    for number in range(60):
        id_, time_ms = f"e{number}", 1_000_000 + 1_000 * number - (3_000 if number % 9 == 4 else 0)
        values = [
            id_,
            time_ms,
            "ab"[number % 2],
            f"shop{number % 3}",
            number % 5,
            1.5 * number,
            25 * number,
            number % 2 == 0,
        ]
        source = (number % 2, number, max(0, number - 6)) if number > 50 else None
        yield encode_event(1, id_, time_ms, values, source=source)


def no_log(first: int, end: int) -> Iterable[tuple[int, Records]]:
    raise AssertionError("a task without a checkpoint reads no log")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A task's folder with one checkpoint. No clock runs: nothing is put off, nothing is done sooner."""
    still = TaskEnvironment(now=lambda: 0.0, used_s=lambda: 0.0)
    task = open_task(tmp_path, IDENTITY, DiskFiles(), no_log, SETTINGS, environment=still)
    try:
        task.history, task.topic_id = HISTORY, TOPIC_ID
        feed(task, log())
        # Now, so that the answers that it remembers are as ever.
        task.gap, task.begun = GAP, HISTORY
        task.checkpoints.take()
    finally:
        task.close()
    return tmp_path


def feed(task: TaskProcessor, records: list[bytes]) -> None:
    for first in range(0, len(records), 8):
        task.process(Records.of(records[first : first + 8]), first, lambda replies: task.encode(replies))


def commit(folder: Path) -> tuple[int, bytes, bytes]:
    stored = StoredState(folder / "state")
    try:
        found = stored.commit()
    finally:
        stored.close()
    assert found is not None
    return found[0], *split_meta(found[1])


def test_what_a_checkpoint_keeps(folder: Path) -> None:
    epoch, meta, length = commit(folder)
    kept: list[Any] = msgspec.msgpack.decode(meta)
    body = dict(zip(PLACES, kept, strict=True))
    for row in body["cells"].values():
        row[:] = [" ".join(map(str, cell)) for cell in row]
    segment, size_bytes, *rest = msgspec.msgpack.decode(length)
    # How many bytes Arrow makes of a chunk is its own affair.
    held("checkpoint.json", {"epoch": epoch, "length": [segment, kind_of(size_bytes), *rest], **body})


def test_nothing_of_it_is_empty(folder: Path) -> None:
    """What has no value in it would hold no name."""
    body = dict(zip(PLACES, msgspec.msgpack.decode(commit(folder)[1]), strict=True))
    assert [name for name, value in body.items() if not value] == []
    assert body["metrics"]["fills"].keys() == {"0", "52"}
    assert all(body["inputs"].values())
    assert any(cell[0].startswith("retired|") for row in body["cells"].values() for cell in row)


@pytest.mark.parametrize(("gap", "version"), [(None, 1), (GAP, 2)])
def test_a_release_without_gaps_refuses_a_task_that_has_crossed_one(
    gap: Crossing | None, version: int, tmp_path: Path
) -> None:
    """It reads version 1, and would leave out the marks of partial results."""
    task = open_task(tmp_path, IDENTITY, DiskFiles(), no_log, SETTINGS)
    try:
        feed(task, log())
        task.gap = gap
        task.checkpoints.take()
        snapshot = snapshot_of(task, 1)
    finally:
        task.close()
    body = dict(zip(PLACES, msgspec.msgpack.decode(commit(tmp_path)[1]), strict=True))
    assert body["version"] == version
    assert snapshot is not None
    assert snapshot.what.formats["commit"] == version


def test_a_later_version_is_refused(folder: Path) -> None:
    meta = msgspec.msgpack.decode(commit(folder)[1])
    with pytest.raises(
        CheckpointVersionError, match="its checkpoint has version 3, this program reads up to 2"
    ):
        decode_meta(msgspec.msgpack.encode([3, *meta[1:]]), "here")
