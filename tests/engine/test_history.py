"""History before a stream's log: everything is as if it had come through the log, and what cannot be so is refused."""

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from railgun.cli.inspect import as_text
from railgun.cli.inspection import inspect_task
from railgun.engine.engine import Engine
from railgun.engine.errors import FolderError, HistoryRefusedError
from railgun.engine.folder import DataFolder
from railgun.history.manifest import HISTORY, MANIFEST, read_manifest
from railgun.host import history as host_history
from railgun.registry import catalog_log
from railgun.registry.errors import UnknownNameError
from railgun.task.errors import HistoryMissingError
from railgun.task.processor import TaskProcessor
from railgun.task.settings import TaskSettings
from reservoir.files import DiskFiles
from tests.engine.histories import build_history, chunks, first_seq, state

SETTINGS = TaskSettings(chunk_events=32, segment_bytes=1 << 13, checkpoint_interval_s=1e9)
START_MS = 1_700_000_000_000
EVENTS = 600
CUT_MS = START_MS + EVENTS * 500
STREAM = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["card", "*"]
partitions = 2
lateness = "4s"
dedup_events = {dedup}
[streams.s.fields]
id = "string"
ts = "timestamp"
card = "string"
shop = "long"
amount = "double"
price = "decimal(9,2)"
note = "string"
"""
METRICS = """
[[metrics]]
sql = '''SELECT count(*) AS n, sum(amount) AS total, stddev(amount) AS spread, max(note) AS most, min(amount) AS least,
  first(price) AS first_price, last(note) AS latest, prev(amount) AS before, count_distinct(note) AS notes
  FROM s GROUP BY card OVER SLIDING 40 SECONDS'''
[[metrics]]
sql = '''SELECT avg(price) AS mean, first(amount) AS opening, count_distinct(shop) AS shops
  FROM s WHERE amount > 3 GROUP BY card, shop OVER TUMBLING 1 MINUTE'''
[[metrics]]
sql = '''SELECT sum(amount) AS delayed, max(price) AS peak FROM s GROUP BY shop
  OVER SLIDING 30 SECONDS DELAYED BY 20 SECONDS'''
[[metrics]]
sql = '''SELECT count(*) AS ever, last(price) AS last_price, max(amount) AS greatest
  FROM s GROUP BY shop OVER INFINITE'''
[[metrics]]
sql = '''SELECT avg(amount) AS usual, last(ts) AS last_ts, count_distinct(note) AS notes_before,
  count(*) FILTER (WHERE MINUTE(ts IN 'Asia/Kolkata') % 4 = 0) AS fourths
  FROM s GROUP BY card OVER SLIDING 40 SECONDS EXCLUDE CURRENT'''
[[metrics]]
sql = "SELECT count(*) FILTER (WHERE MINUTE(ts IN 'Asia/Kolkata') < 45) AS early FROM s GROUP BY shop OVER INFINITE"
[[metrics]]
sql = "DERIVE amount / usual AS times_usual, ts - last_ts AS gap_ms, n + early AS both, n - fourths AS others FROM s"
"""


def rows(first: int, n: int) -> pa.Table:
    """Events first to first + n - 1, two a second; two of three of one card, nulls here and there."""
    numbers = range(first, first + n)
    return pa.table(
        {
            "id": [f"e{i:05d}" for i in numbers],
            "ts": pa.array([START_MS + 500 * i for i in numbers], pa.int64()),
            "card": [None if i % 11 == 0 else "hot" if i % 3 else f"c{i % 7}" for i in numbers],
            "shop": pa.array([None if i % 13 == 0 else i % 4 for i in numbers], pa.int64()),
            "amount": [None if i % 9 == 0 else (i * 37 % 101) / 8 for i in numbers],
            "price": [f"{i % 50}.25" for i in numbers],
            "note": [f"n{i * 5 % 17}" for i in numbers],
        }
    )


def history_rows() -> pa.Table:
    """What lies before the cut, one in ten twice; sorted."""
    table = rows(0, EVENTS)
    return table.take(sorted([*range(EVENTS), *range(0, EVENTS, 10)]))


def definitions(dedup: int = 10_000) -> str:
    return STREAM.format(dedup=dedup) + METRICS


def engine(folder: Path) -> Engine:
    return Engine(folder, durability="os", settings=SETTINGS)


@pytest.fixture(autouse=True)
def one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entities are told by hashes under a stream's key: two folders are alike only where that is the same."""
    monkeypatch.setattr(catalog_log, "os", SimpleNamespace(urandom=bytes))


def tasks(opened: Engine) -> list[TaskProcessor]:
    return [member.task for member in opened._streams.live("s").hosts]


def of_keys(opened: Engine) -> list[Any]:
    """The values of some keys, and the clocks of their tasks: logs differ in length."""
    keys = [{"card": "hot"}, {"card": "c1", "shop": 2}, {"shop": None}, {"shop": 3}, {"card": "never seen"}]
    return [
        (each["metrics"], {name: place["time"] for name, place in each["as_of"].items()})
        for each in opened.values("s", keys)
    ]


def made_ready(folder: Path, text: str, table: pa.Table, cut_ms: int = CUT_MS, before: int = 0) -> Path:
    """A folder with the stream, `before` events in its log, and a history built in its place."""
    with engine(folder) as opened:
        opened.apply(text)
        if before:
            opened.score_table("s", rows(EVENTS - before // 2, before))
        plan = opened.history_plan("s", "h1", cut_ms)
    ready = folder / "backfill" / "s" / "tasks"
    build_history(ready, plan, table, SETTINGS)
    return ready


def test_it_is_as_if_it_had_come_through_the_log(tmp_path: Path) -> None:
    later = rows(EVENTS - 40, 300)
    with engine(tmp_path / "log") as reference:
        reference.apply(definitions())
        reference.score_table("s", history_rows())
    made_ready(tmp_path / "new", definitions(), history_rows())
    with engine(tmp_path / "log") as reference, engine(tmp_path / "new") as opened:
        opened.add_history("s")
        assert all(metric.warming is False for metric in opened.metrics("s"))
        with reference._lock, opened._lock:
            for wanted, task in zip(tasks(reference), tasks(opened)):
                assert task.identity == wanted.identity
                expected, found = chunks(wanted), chunks(task)
                assert len(expected) > 2
                assert all(a.equals(b) for a, b in zip(expected, found, strict=True))
                shift = first_seq(wanted) - first_seq(task)
                assert shift > 0
                assert state(task, shift) == state(wanted)
                assert state(task) != state(wanted)
        assert of_keys(opened) == of_keys(reference)
        assert opened.score_table("s", later).equals(reference.score_table("s", later))
        assert of_keys(opened) == of_keys(reference)
    with engine(tmp_path / "log") as reference, engine(tmp_path / "new") as opened:
        # What was open was in no log: it came from the history's own file.
        with reference._lock, opened._lock:
            for wanted, task in zip(tasks(reference), tasks(opened)):
                # Their logs differ in length, so positions of what came by the log cannot be compared.
                assert state(task).keys() == state(wanted).keys()
        for first in range(EVENTS + 260, EVENTS + 900, 160):
            assert opened.score_table("s", rows(first, 160)).equals(
                reference.score_table("s", rows(first, 160))
            )


def test_it_is_there_after_a_restart_right_away(tmp_path: Path) -> None:
    made_ready(tmp_path, definitions(), history_rows().slice(0, 20), before=0)
    with engine(tmp_path) as opened:
        opened.add_history("s")
        with opened._lock:
            held = [state(task) for task in tasks(opened)]
    for _ in range(2):
        with engine(tmp_path) as opened, opened._lock:
            assert [state(task) for task in tasks(opened)] == held
    with engine(tmp_path) as opened, pytest.raises(HistoryRefusedError, match="has a history already"):
        opened.add_history("s")


def test_events_in_history_and_log_count_once(tmp_path: Path) -> None:
    """The log had begun before the cut: it is run again behind the history."""
    with engine(tmp_path / "log") as reference:
        reference.apply(definitions())
        reference.score_table("s", history_rows())
        reference.score_table("s", rows(EVENTS - 30, 60))
        made_ready(tmp_path / "new", definitions(), history_rows(), before=60)
        with engine(tmp_path / "new") as opened:
            opened.add_history("s")
            opened.add_metrics("s", "SELECT sum(shop) AS sum_late FROM s GROUP BY card OVER SLIDING 1 DAY")
            reference.add_metrics("s", "SELECT sum(shop) AS sum_late FROM s GROUP BY card OVER SLIDING 1 DAY")
            for first in (EVENTS + 30, EVENTS + 200):
                wanted = reference.score_table("s", rows(first, 170))
                assert opened.score_table("s", rows(first, 170)).equals(wanted)


def test_a_hole_before_the_log_is_refused(tmp_path: Path) -> None:
    cut_ms = START_MS + (EVENTS - 30) * 500 - 1
    with pytest.raises(HistoryRefusedError, match="what came in between would be missing"):
        made_ready(tmp_path, definitions(), history_rows(), cut_ms, before=60)
    made_ready(tmp_path / "touching", definitions(), rows(0, EVENTS - 30), cut_ms + 1, before=60)
    with engine(tmp_path / "touching") as opened:
        opened.add_history("s")
        assert [task.history for task in tasks(opened)] == ["h1"] * 3


def test_a_log_that_lost_its_beginning_is_refused(tmp_path: Path) -> None:
    with engine(tmp_path) as opened:
        opened.apply(definitions())
        opened.score_table("s", rows(0, 3000))
    with engine(tmp_path) as opened, pytest.raises(HistoryRefusedError, match="has lost its beginning"):
        opened.history_plan("s", "h1", CUT_MS)


def test_more_in_both_than_ids_are_known_is_refused(tmp_path: Path) -> None:
    made_ready(tmp_path, definitions(dedup=8), history_rows(), before=60)
    with engine(tmp_path) as opened, pytest.raises(HistoryRefusedError, match="choose an earlier --until"):
        opened.add_history("s")


@pytest.mark.parametrize(
    ("line", "lacks"), [('id = "id"\n', "no id field"), ('time = "ts"\n', "no time field")]
)
def test_a_stream_without_ids_or_times_is_refused(tmp_path: Path, line: str, lacks: str) -> None:
    with engine(tmp_path) as opened:
        opened.apply(STREAM.format(dedup=10).replace(line, ""))
        with pytest.raises(HistoryRefusedError, match=lacks):
            opened.history_plan("s", "h1", CUT_MS)
        with pytest.raises(UnknownNameError):
            opened.history_plan("t", "h1", CUT_MS)


def _flip(place: Path) -> None:
    data = bytearray(place.read_bytes())
    data[len(data) // 2] ^= 1
    place.write_bytes(data)


def _cut(place: Path) -> None:
    place.write_bytes(place.read_bytes()[:-1])


@pytest.mark.parametrize("damage", [_flip, _cut, Path.unlink])
@pytest.mark.parametrize("what", ["reservoir/*.seg", "state/*.sst", "history/tail.arrow"])
def test_damage_is_told_before_anything_changes(
    tmp_path: Path, damage: Callable[[Path], None], what: str
) -> None:
    ready = made_ready(tmp_path, definitions(), history_rows())
    damage(next(iter(sorted(ready.glob(f"all/0/{what}")))))
    with engine(tmp_path) as opened:
        with pytest.raises(FolderError, match="build the history again"):
            opened.add_history("s")
        assert opened.score_table("s", rows(0, 5)).num_rows == 5
        assert [task.history for task in tasks(opened)] == [""] * 3


def test_tasks_of_other_histories_are_refused(tmp_path: Path) -> None:
    ready = made_ready(tmp_path, definitions(), history_rows())
    other = made_ready(tmp_path / "other", definitions(), history_rows())
    manifest = other / "all" / "0" / HISTORY / MANIFEST
    manifest.write_text(manifest.read_text().replace('"h1"', '"h2"'))
    with engine(tmp_path) as opened:
        (ready / "all" / "0").rename(ready / "all" / "1")
        with pytest.raises(FolderError):
            opened.add_history("s")
        (other / "all" / "0").rename(ready / "all" / "0")
        with pytest.raises(HistoryRefusedError, match="several histories"):
            opened.add_history("s")


@pytest.mark.parametrize("point", ["appended", "removed", "half copied", "copied"])
def test_a_crash_half_way_is_brought_to_its_end(
    tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_ready(tmp_path, definitions(), history_rows(), before=60)
    whole = host_history.copy_folder

    def crash(*_: object) -> None:
        raise OSError("the power is gone")

    def half(made: Path, to: Path) -> None:
        shutil.copytree(made / "state", to.with_name(f"{to.name}.coming") / "state")
        crash()

    def copied(made: Path, to: Path) -> None:
        whole(made, to)
        crash()

    points = {
        "appended": ("verified_manifest", crash),
        "removed": ("copy_folder", crash),
        "half copied": ("copy_folder", half),
        "copied": ("copy_folder", copied),
    }
    opened = engine(tmp_path)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(host_history, *points[point])
            with pytest.raises(FolderError, match="the power is gone"):
                opened.add_history("s")
    finally:
        opened.close()
    for _ in range(2):
        with engine(tmp_path) as opened:
            assert [task.history for task in tasks(opened)] == ["h1"] * 3
            assert all(
                task.admission.clock_ms == START_MS + (EVENTS + 29) * 500 for task in tasks(opened)[-1:]
            )
    assert not (tmp_path / "backfill" / "s").exists()


def test_a_task_that_lost_its_history_says_so(tmp_path: Path) -> None:
    made_ready(tmp_path, definitions(), history_rows().slice(0, 20))
    with engine(tmp_path) as opened:
        opened.add_history("s")
    folder = DataFolder(tmp_path, DiskFiles())
    manifest = read_manifest(tmp_path / "streams" / "s" / "all" / "0")
    assert (manifest.events, manifest.duplicates) == (20, 2)
    report = inspect_task(tmp_path / "streams" / "s" / "all" / "0")
    assert report.damage == ()
    assert "history     h1: 20 events before 2023-11-14T22:18:20Z" in as_text(report)
    for place in (tmp_path / "streams" / "s" / "all" / "0").rglob("tail.arrow"):
        _flip(place)
    assert "checksum" in inspect_task(tmp_path / "streams" / "s" / "all" / "0").damage[0]
    engine(tmp_path).close()
    for place in (tmp_path / "streams" / "s" / "all" / "0").rglob("*.open"):
        _flip(place)
    with pytest.raises(FolderError, match="CRC of open rows does not match"):
        engine(tmp_path)
    folder.remove_stream("s")
    with pytest.raises(FolderError, match="history h1 was put before its log"):
        engine(tmp_path)
    assert issubclass(HistoryMissingError, Exception)
