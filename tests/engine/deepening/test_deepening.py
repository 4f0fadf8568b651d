"""Deepening a live stream: until its tasks take over all replies are as they were, from then on as if the history had
come through the log."""

import atexit
import shutil
import tempfile
import threading
import time
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from railgun.cli.inspect import as_text
from railgun.cli.inspection import inspect_task, task_folders
from railgun.cli.log_inspection import inspect_log
from railgun.engine import stream_hosts
from railgun.engine.deepening.deepening import Deepening
from railgun.engine.engine import Engine
from railgun.engine.errors import FolderError, HistoryRefusedError
from railgun.engine.stream_hosts import StreamHosts
from railgun.history.task_folder import move_to
from railgun.host.deepening import take_over
from railgun.host.deepening.successor import Successor
from railgun.registry import catalog_log
from railgun.registry.errors import EngineError
from railgun.task.errors import TaskError
from tests.engine.deepening.deepened import build_deepening
from tests.engine.histories import chunks, first_seq, state
from tests.engine.test_history import SETTINGS, START_MS, definitions, engine, of_keys, rows, tasks

BEGIN, CUT, NOW, SWAP, END = 400, 440, 3600, 3800, 4200
CUT_MS = START_MS + CUT * 500


@pytest.fixture(autouse=True)
def one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_log, "os", SimpleNamespace(urandom=bytes))


def live_rows(first: int, end: int) -> pa.Table:
    """Events as they arrive: some out of order, some late, some twice."""
    numbers = list(range(first, end))
    for at in range(5, len(numbers) - 40, 7):
        numbers[at], numbers[at + 3] = numbers[at + 3], numbers[at]
    for at in range(11, len(numbers) - 40, 31):
        numbers.insert(at + 25, numbers.pop(at))
    for at in range(20, len(numbers) - 40, 23):
        numbers.insert(at, numbers[at - 13])
    return rows(0, end).take(numbers)


def accepted_rows(table: pa.Table) -> pa.Table:
    """Without those that come again."""
    seen: dict[str, int] = {}
    for row, event_id in enumerate(table.column("id").to_pylist()):
        seen.setdefault(event_id, row)
    return table.take(sorted(seen.values()))


def through_the_log(history: pa.Table, own: pa.Table, cut_ms: int = CUT_MS) -> pa.Table:
    """History and the stream's own events in the order in which the tasks are built of them."""
    before = pa.concat_tables([t.filter(pc.less(t.column("ts"), cut_ms)) for t in (history, own)])
    before = before.sort_by([("ts", "ascending"), ("id", "ascending")])
    return pa.concat_tables([before, own.filter(pc.greater_equal(own.column("ts"), cut_ms))])


def history_rows(end: int = CUT + 30) -> pa.Table:
    """What lies before the cut and a little more, one in ten twice, in no order."""
    n = [*range(end), *range(0, end, 10)]
    return rows(0, end).take(sorted(n, key=lambda row: row * 7919 % end))


def scored(opened: Engine, table: pa.Table) -> pa.Table:
    return pa.concat_tables(
        [opened.score_table("s", table.slice(at, 150)) for at in range(0, len(table), 150)]
    )


def built(folder: Path, opened: Engine, cut_ms: int | None = CUT_MS, history: pa.Table | None = None) -> None:
    """A deepening that has begun, and its tasks made ready."""
    plan = opened.begin_deepening("s", cut_ms)
    table = history_rows() if history is None else history
    build_deepening(folder / "backfill" / "s" / "tasks", plan, table, SETTINGS)


def live(folder: Path) -> None:
    """A stream that has taken the events from BEGIN to NOW, its log trimmed: a copy of one that was made once."""
    shutil.copytree(_made_once(), folder, dirs_exist_ok=True)


@cache
def _made_once() -> Path:
    holder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, holder, ignore_errors=True)
    folder = holder / "live"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog_log, "os", SimpleNamespace(urandom=bytes))
        with engine(folder) as opened:
            opened.apply(definitions())
            scored(opened, live_rows(BEGIN, NOW))
        with engine(folder) as opened:
            assert any(member.log.start > 0 for member in opened._streams.live("s").hosts)
    return folder


def reference(folder: Path, table: pa.Table, text: str = "") -> Engine:
    opened = engine(folder)
    opened.apply(text or definitions())
    scored(opened, table)
    return opened


def test_its_tasks_are_as_if_history_had_come_through_the_log(tmp_path: Path) -> None:
    own = live_rows(BEGIN, NOW)
    live(tmp_path / "live")
    with (
        reference(tmp_path / "log", through_the_log(history_rows(), accepted_rows(own))) as wanted,
        engine(tmp_path / "live") as opened,
    ):
        built(tmp_path / "live", opened)
        begun_s = time.monotonic()
        opened.deepen("s")
        assert opened._background._called_s < begun_s, "who waits for it keeps nothing from its time"
        assert opened.deepening("s") is None
        with wanted._lock, opened._lock:
            for expected, task in zip(tasks(wanted), tasks(opened), strict=True):
                assert task.identity == expected.identity
                found = chunks(task)
                assert len(found) > 8
                assert all(a.equals(b) for a, b in zip(chunks(expected), found, strict=True))
                assert state(task, first_seq(expected) - first_seq(task)) == state(expected)
                assert task.admission.settings_in_force == expected.admission.settings_in_force
        assert scored(opened, rows(NOW, 300)).equals(scored(wanted, rows(NOW, 300)))
    assert not (tmp_path / "live" / "backfill" / "s").exists()
    with engine(tmp_path / "live") as opened, engine(tmp_path / "log") as wanted:
        assert scored(opened, rows(NOW + 300, 300)).equals(scored(wanted, rows(NOW + 300, 300)))


def test_replies_are_the_old_ones_until_then_and_the_new_ones_after(tmp_path: Path) -> None:
    own, meanwhile, after = live_rows(BEGIN, NOW), live_rows(NOW, SWAP), live_rows(SWAP, END)
    live(tmp_path / "live")
    live(tmp_path / "old")
    everything = pa.concat_tables([through_the_log(history_rows(), accepted_rows(own)), meanwhile])
    with (
        reference(tmp_path / "log", everything) as wanted,
        engine(tmp_path / "old") as old,
        engine(tmp_path / "live") as opened,
    ):
        plan = opened.begin_deepening("s", CUT_MS)
        assert scored(opened, meanwhile).equals(scored(old, meanwhile))
        assert of_keys(opened) == of_keys(old)
        build_deepening(tmp_path / "live" / "backfill" / "s" / "tasks", plan, history_rows(), SETTINGS)
        opened.deepen("s")
        assert of_keys(opened) == of_keys(wanted) != of_keys(old)
        assert scored(opened, after).equals(scored(wanted, after))
        assert not scored(opened, after.slice(0, 5)).equals(scored(old, after.slice(0, 5)))


def test_the_cut_is_found_and_a_hole_is_refused(tmp_path: Path) -> None:
    live(tmp_path)
    with engine(tmp_path) as opened:
        with pytest.raises(HistoryRefusedError, match="what came in between would be missing"):
            opened.begin_deepening("s", START_MS + BEGIN * 500 - 1)
        with pytest.raises(HistoryRefusedError, match="what is still to come would be late"):
            opened.begin_deepening("s", START_MS + 2 * NOW * 500)
        assert not (tmp_path / "backfill" / "s" / "own").exists()
        assert opened.deepening("s") is None
        found_ms = START_MS + BEGIN * 500 + 2 * 4_000 + 1
        assert opened.begin_deepening("s").cut_ms == found_ms
        standing = opened.deepening("s")
        assert standing is not None
        assert (standing.state, standing.cut_ms) == ("building", found_ms)


def test_the_first_millisecond_is_no_hole(tmp_path: Path) -> None:
    """Events of history at the very time of the stream's first."""
    both = rows(0, 60).set_column(1, "ts", pa.array([START_MS + i // 8 for i in range(60)], pa.int64()))
    with engine(tmp_path / "live") as opened:
        opened.apply(definitions())
        scored(opened, both.slice(20))
        built(tmp_path / "live", opened, cut_ms=None, history=both.slice(0, 40))
        opened.deepen("s")
        with reference(tmp_path / "log", both) as wanted:
            assert scored(opened, rows(60, 100)).equals(scored(wanted, rows(60, 100)))


def test_events_out_of_order_where_the_stream_begins_leave_no_hole(tmp_path: Path) -> None:
    """What came before the stream's first event may be later than events that came after it."""
    both = rows(0, 200).take([*range(90), 99, *range(90, 99), *range(100, 200)])
    with engine(tmp_path / "live") as opened:
        opened.apply(definitions())
        scored(opened, both.slice(93))
        built(tmp_path / "live", opened, cut_ms=None, history=both.slice(0, 93))
        opened.deepen("s")
        with reference(tmp_path / "log", both) as wanted:
            assert scored(opened, rows(200, 100)).equals(scored(wanted, rows(200, 100)))


def test_events_that_were_let_go_must_be_in_the_history(tmp_path: Path) -> None:
    text = definitions().replace('lateness = "4s"', 'lateness = "4s"\nretention = "1m"')
    text = text.replace("dedup_events = 10000", "dedup_events = 100")
    folder = tmp_path / "live"
    with engine(folder) as opened:
        opened.apply(text)
        scored(opened, rows(BEGIN, NOW))
    with engine(folder) as opened:
        with pytest.raises(HistoryRefusedError, match=r"has let its events before .* go"):
            opened.begin_deepening("s", CUT_MS)
        plan = opened.begin_deepening("s")
        held = [task.reservoir.oldest_ms or 0 for task in tasks(opened)]
        assert plan.cut_ms == max(held) + 1 > CUT_MS
        build_deepening(folder / "backfill" / "s" / "tasks", plan, rows(0, BEGIN + NOW), SETTINGS)
        opened.deepen("s")
        found = scored(opened, rows(BEGIN + NOW, 300))
        with reference(tmp_path / "log", rows(0, BEGIN + NOW)) as wanted:
            assert found.equals(scored(wanted, rows(BEGIN + NOW, 300)))


def test_it_is_known_whether_a_metric_may_lack_events(tmp_path: Path) -> None:
    """One came when retention had let go what another one's window keeps: older events are not all it may lack."""
    text = definitions().replace('lateness = "4s"', 'lateness = "4s"\nretention = "10s"')
    later = (
        text
        + "\n[[metrics]]\nsql = 'SELECT count(*) AS later FROM s GROUP BY card OVER SLIDING 35 SECONDS'\n"
    )
    folder = tmp_path / "live"
    with engine(folder) as opened:
        opened.apply(text)
        scored(opened, rows(BEGIN, 300))
        plan = opened.begin_deepening("s")
        assert not any(own.has_bounds for own in plan.own.values())
        opened.give_up_deepening("s")
        opened.apply(later)
        partial = scored(opened, rows(BEGIN + 300, 5)).column("partial").to_pylist()
        assert {name for each in partial for name, _ in each} == {"later"}
        built(folder, opened, None, rows(BEGIN, 100))
        assert {at for at, own in opened.begin_deepening("s").own.items() if own.has_bounds} == {
            ("card", 0),
            ("card", 1),
        }
        opened.deepen("s")
        found = scored(opened, rows(BEGIN + 305, 100))
        assert not any(found.column("partial").to_pylist())
        plan = opened.begin_deepening("s")
        assert not any(own.has_bounds for own in plan.own.values())
    with reference(tmp_path / "log", rows(BEGIN, 305), later) as wanted:
        # There it was added before the derived metrics.
        assert found.equals(scored(wanted, rows(BEGIN + 305, 100)).select(found.column_names))


def test_a_stream_without_events_is_refused(tmp_path: Path) -> None:
    with engine(tmp_path) as opened:
        opened.apply(definitions())
        with pytest.raises(HistoryRefusedError, match="as its beginning"):
            opened.begin_deepening("s")


def test_an_event_that_would_count_at_another_time_is_refused(tmp_path: Path) -> None:
    """It was in time under the lateness of then, and would be late under that of now."""
    own = rows(BEGIN, 200).take([*range(20), *range(40, 60), *range(20, 40), *range(60, 200)])
    with engine(tmp_path) as opened:
        opened.apply(definitions().replace('lateness = "4s"', 'lateness = "1m"'))
        scored(opened, own)
        opened.set_lateness("s", "1s")
        plan = opened.begin_deepening("s", START_MS + (BEGIN + 10) * 500)
        with pytest.raises(TaskError, match="lateness was changed after it came; choose an --until later"):
            build_deepening(tmp_path / "tasks", plan, history_rows(), SETTINGS)
        assert opened.give_up_deepening("s")
        plan = opened.begin_deepening("s", START_MS + (BEGIN + 100) * 500)
        build_deepening(tmp_path / "backfill" / "s" / "tasks", plan, history_rows(), SETTINGS)
        opened.deepen("s")
        assert all(task.history == plan.history for task in tasks(opened))


def with_extra(table: pa.Table) -> pa.Table:
    return table.append_column("extra", pa.array(range(len(table)), pa.int64()))


def test_metrics_come_and_go_while_it_is_under_way(tmp_path: Path) -> None:
    own = live_rows(BEGIN, NOW)
    live(tmp_path / "live")
    late = "SELECT sum(shop) AS sum_late FROM s GROUP BY card OVER SLIDING 1 DAY"
    with (
        reference(tmp_path / "log", through_the_log(history_rows(), accepted_rows(own))) as wanted,
        engine(tmp_path / "live") as opened,
    ):
        plan = opened.begin_deepening("s", CUT_MS)
        for each in (opened, wanted):
            scored(each, rows(NOW, 50))
            each.add_metrics("s", late)
            each.drop_metric("s", "total")
            each.add_field("s", "extra", "long")
            scored(each, with_extra(rows(NOW + 50, 50)))
        build_deepening(tmp_path / "live" / "backfill" / "s" / "tasks", plan, history_rows(), SETTINGS)
        opened.deepen("s")
        after = with_extra(rows(NOW + 100, 300))
        assert scored(opened, after).equals(scored(wanted, after))


def test_a_second_one(tmp_path: Path) -> None:
    own = live_rows(BEGIN, NOW)
    live(tmp_path / "live")
    first = history_rows().filter(pc.greater_equal(history_rows().column("ts"), START_MS + 200 * 500))
    order = through_the_log(history_rows(), through_the_log(first, accepted_rows(own)), START_MS + 210 * 500)
    with (
        reference(tmp_path / "log", order) as wanted,
        engine(tmp_path / "live") as opened,
    ):
        built(tmp_path / "live", opened, history=first)
        opened.deepen("s")
        built(tmp_path / "live", opened, cut_ms=START_MS + 210 * 500)
        opened.deepen("s")
        assert scored(opened, rows(NOW, 300)).equals(scored(wanted, rows(NOW, 300)))
    folders = list(task_folders(tmp_path / "live" / "streams"))
    reports = [inspect_task(folder) for folder in folders]
    assert [report.damage for report in reports] == [()] * 3
    assert "events up to log position" in as_text(reports[0])
    log = inspect_log(tmp_path / "live", reports)
    assert log is not None
    assert log.damage == ()
    with engine(tmp_path / "live") as opened:
        place = tmp_path / "live" / "streams" / "s" / "all" / "0"
        assert sorted(path.name for path in place.iterdir()) == sorted(
            ["folder.id", "moved_to", tasks(opened)[-1].history]
        )


def test_a_restart_in_between(tmp_path: Path) -> None:
    own = live_rows(BEGIN, NOW)
    live(tmp_path / "live")
    with engine(tmp_path / "live") as opened:
        plan = opened.begin_deepening("s", CUT_MS)
        scored(opened, rows(NOW, 4000))
    with engine(tmp_path / "live") as opened:
        assert opened.begin_deepening("s") == plan
        with pytest.raises(HistoryRefusedError, match=r"a deepening until .* is under way"):
            opened.begin_deepening("s", CUT_MS + 500)
        with pytest.raises(HistoryRefusedError, match="no history was made ready"):
            opened.deepen("s")
        build_deepening(tmp_path / "live" / "backfill" / "s" / "tasks", plan, history_rows(), SETTINGS)
        scored(opened, rows(NOW + 4000, 100))
        opened.deepen("s")
        order = pa.concat_tables([through_the_log(history_rows(), accepted_rows(own)), rows(NOW, 4100)])
        with reference(tmp_path / "log", order) as wanted:
            assert scored(opened, rows(NOW + 4100, 200)).equals(scored(wanted, rows(NOW + 4100, 200)))


def test_given_up_it_leaves_nothing(tmp_path: Path) -> None:
    live(tmp_path)
    with engine(tmp_path) as opened:
        assert not opened.give_up_deepening("s")
        built(tmp_path, opened)
        starts = [member.log.start for member in opened._streams.live("s").hosts]
        assert opened.give_up_deepening("s")
        assert not (tmp_path / "backfill" / "s").exists()
        with pytest.raises(HistoryRefusedError, match="no deepening has begun"):
            opened.deepen("s")
        scored(opened, rows(NOW, 6000))
        with opened._lock:
            opened._streams.live("s").hosts.checkpoint()
        now = [member.log.start for member in opened._streams.live("s").hosts]
        assert sum(now) > sum(starts) + 2000


@pytest.mark.parametrize("what", ["reservoir/*.seg", "state/*.sst", "history/tail.arrow"])
def test_damage_is_told_before_anything_changes(tmp_path: Path, what: str) -> None:
    live(tmp_path)
    with engine(tmp_path) as opened:
        built(tmp_path, opened)
        place = next(iter(sorted((tmp_path / "backfill" / "s" / "tasks" / "all" / "0").glob(what))))
        data = bytearray(place.read_bytes())
        data[len(data) // 2] ^= 1
        place.write_bytes(data)
        with pytest.raises(FolderError, match="build the history again"):
            opened.deepen("s")
        assert [task.history for task in tasks(opened)] == [""] * 3
        assert scored(opened, rows(NOW, 50)).num_rows == 50


@pytest.mark.parametrize("point", ["begun", "appended", "taken over", "moved", "removed"])
def test_a_crash_leaves_the_old_tasks_or_the_new_ones(
    tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = live_rows(BEGIN, NOW)
    live(tmp_path / "live")

    def crash(*_: object) -> None:
        raise OSError("the power is gone")

    moved: list[Path] = []

    def half(place: Path, history: str) -> None:
        if len(moved) == 2:
            crash()
        moved.append(place)
        move_to(place, history)

    targets = {
        "begun": (StreamHosts, "replace", crash),
        "appended": (stream_hosts, "catch_up", crash),
        "taken over": (take_over, "move_to", crash),
        "moved": (take_over, "move_to", half),
        "removed": (Deepening, "remove", crash),
    }
    opened = engine(tmp_path / "live")
    try:
        built(tmp_path / "live", opened)
        with monkeypatch.context() as patch:
            patch.setattr(*targets[point])
            with pytest.raises(EngineError, match="the power is gone"):
                opened.deepen("s")
        if point in ("taken over", "moved", "removed"):
            scored(opened, rows(NOW, 50))
        else:
            assert opened.failure is not None
    finally:
        opened.close(checkpoint=False)
    order = through_the_log(history_rows(), accepted_rows(own))
    with reference(tmp_path / "log", order) as wanted:
        if point in ("taken over", "moved", "removed"):
            scored(wanted, rows(NOW, 50))
        for _ in range(2):
            with engine(tmp_path / "live") as opened:
                assert len({task.history for task in tasks(opened)}) == 1
                assert tasks(opened)[0].history != ""
                assert opened.deepening("s") is None
        assert not (tmp_path / "live" / "backfill" / "s").exists()
        with engine(tmp_path / "live") as opened:
            assert scored(opened, rows(NOW + 50, 200)).equals(scored(wanted, rows(NOW + 50, 200)))


def test_it_may_be_begun_again_and_status_asked_while_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live(tmp_path)
    with engine(tmp_path) as opened:
        built(tmp_path, opened)
        plan = opened.begin_deepening("s")
        with monkeypatch.context() as patch:
            patch.setattr(Successor, "is_near", False)
            installing = threading.Thread(target=opened.deepen, args=("s",))
            installing.start()
            try:
                while not all(host.take_over.successor for host in opened._streams.live("s").hosts):
                    time.sleep(0.01)
                assert opened.begin_deepening("s") == plan
                (stream,) = opened.status().streams
                assert stream.deepening is not None
                assert (stream.deepening.state, stream.deepening.behind) == ("installing", 0)
                with pytest.raises(HistoryRefusedError, match="is being installed"):
                    opened.deepen("s")
                with pytest.raises(HistoryRefusedError, match="is being installed"):
                    opened.give_up_deepening("s")
            finally:
                patch.undo()
                installing.join()
        assert [task.history for task in tasks(opened)] == [plan.history] * 3


def test_a_stream_dropped_meanwhile_leaves_nothing(tmp_path: Path) -> None:
    live(tmp_path)
    with engine(tmp_path) as opened:
        built(tmp_path, opened)
        opened.drop_stream("s")
        assert not (tmp_path / "backfill" / "s").exists()
        assert not opened._streams._deepenings.kept
        opened.apply(definitions())
        assert opened.deepening("s") is None
