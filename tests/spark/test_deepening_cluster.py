"""Deepening on Kafka: tasks are put aside and followed by units of a node, and taken over at one record."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from railgun.catalog.catalog import StreamEntry
from railgun.catalog.changes import Deepen
from railgun.catalog.definitions import parse_definitions
from railgun.engine.engine import Engine
from railgun.engine.errors import HistoryRefusedError
from railgun.history.request_files import DeepeningRequest, write_request
from railgun.history.task_folder import beside
from railgun.host.deepening.take_over import TakeOver
from railgun.host.place import task_folder
from railgun.registry import evolution
from railgun.spark.backfill.deepening_cluster import DeepeningOfCluster, is_near
from railgun.spark.backfill.source import HistorySource
from railgun.spark.backfill.target import BackfillRequest
from railgun.spark.errors import HistoryError
from railgun.state.lock import FolderLock
from tests.broker.own_topics import own_prefix
from tests.cluster.some_reports import status
from tests.engine.deepening.deepened import build_deepening
from tests.engine.deepening.test_deepening import accepted_rows, history_rows, live_rows, through_the_log
from tests.engine.test_history import START_MS, definitions, rows
from tests.unit.cluster_player import ClusterPlayer
from tests.unit.local_units import SMALL, awaited, local_units, quick_settings

SETTINGS = replace(SMALL, chunk_events=32, segment_bytes=1 << 13)
BEGIN, CUT, NOW = 400, 440, 900
CUT_MS = START_MS + CUT * 500


def computed() -> str:
    """The definitions with a computed partitioner."""
    text = definitions().replace('["card", "*"]', '["bin", "*"]')
    bin_ = "CASE WHEN shop % 3 > 0 THEN SUBSTR(card, 1, 2) ELSE 'of ' || CAST(shop AS string) END"
    text = text.replace("[streams.s.fields]\n", f'[streams.s.fields]\nbin = {{ as = "{bin_}" }}\n')
    sql = "SELECT count(*) AS of_bin, sum(amount) AS bin_total FROM s GROUP BY bin, card OVER SLIDING 40 SECONDS"
    return f'{text}\n[[metrics]]\nsql = "{sql}"\n'


def target(
    kafka: str, prefix: str, folder: Path, cut_ms: int | None = CUT_MS, text: str | None = None
) -> DeepeningOfCluster:
    source, known = HistorySource.of(["h.parquet"]), parse_definitions(text or definitions())
    request = BackfillRequest(folder, known, source, {}, cut_ms, settings=SETTINGS)
    return DeepeningOfCluster(request, quick_settings(kafka), prefix)


def said(replies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: each[name] for name in ("id", "metrics", "duplicate") if name in each} for each in replies]


def scored(player: ClusterPlayer, table: pa.Table) -> list[dict[str, Any]]:
    """The replies to events of a table, all of them awaited."""
    before = len(player.front_end.replies())
    stream = player.registry.snapshot().catalog.streams["s"]
    player.front_end.send(stream, table.to_pylist())
    player.front_end.await_all()
    return said(player.front_end.replies()[before:])


def wanted(folder: Path, before: pa.Table, events: pa.Table, text: str | None = None) -> list[dict[str, Any]]:
    with Engine(folder, durability="os") as reference:
        reference.apply(text or definitions())
        reference.score_table("s", before)
        return said([dict(each) for each in reference.score_many("s", events.to_pylist())])


def built(node: Path) -> list[Path]:
    return [path for path in node.glob("tasks/*/*/*/*") if len(path.name) == 32]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("text", [definitions(), computed()], ids=["recorded", "computed"])
def test_units_take_over_what_was_built(kafka: str, tmp_path: Path, text: str) -> None:
    prefix, node = own_prefix("d"), tmp_path / "node"
    own, meanwhile, after = live_rows(BEGIN, NOW), live_rows(NOW, NOW + 100), live_rows(NOW + 100, NOW + 300)
    made = target(kafka, prefix, node, text=text)
    player = ClusterPlayer(kafka, prefix)
    try:
        player.apply(text)
        with local_units(kafka, prefix, node, 2, SETTINGS) as units:
            scored(player, own)
            with pytest.raises(HistoryRefusedError, match="would be missing"):
                target(kafka, prefix, node, START_MS, text).plan()
            plan = made.plan()
            assert made.plan() == plan
            with pytest.raises(HistoryError, match="is under way"):
                target(kafka, prefix, node, CUT_MS + 1, text).plan()
            old = scored(player, meanwhile)
            build_deepening(made.ready, plan, history_rows(), SETTINGS)
            made.install()
            assert not made.give_up()
            new = scored(player, after.slice(0, 150))
            held = [h.task.history for u in units for h in u.loop.hosts.values()]
            assert held == [plan.history] * 3
        with local_units(kafka, prefix, node, 1, SETTINGS):
            new += scored(player, after.slice(150))
        places = list((node / "tasks").glob("*/*/*"))
        assert len(places) == 3
        awaited(lambda: all((place / "moved_to").is_file() for place in places))
    finally:
        player.close()
    assert sorted(path.name for path in (node / "backfill" / "s").iterdir()) == [
        "installed",
        "installed.json",
    ]
    assert old == wanted(tmp_path / "old", own, meanwhile, text)
    order = pa.concat_tables([through_the_log(history_rows(), accepted_rows(own)), meanwhile])
    assert new == wanted(tmp_path / "new", order, after, text)


@pytest.mark.timeout(600)
def test_a_unit_that_meets_the_record_again_catches_up_first(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is gone before its new folder is the task's: the old task comes to the record, and hands over again."""
    prefix, node = own_prefix("d"), tmp_path / "node"
    own, meanwhile, after = live_rows(BEGIN, NOW), live_rows(NOW, NOW + 100), live_rows(NOW + 100, NOW + 300)
    made = target(kafka, prefix, node)
    player = ClusterPlayer(kafka, prefix)
    never = replace(SETTINGS, checkpoint_interval_s=1e9, replay_s=1e9)
    try:
        player.registry.change(lambda known: evolution.missing(known, parse_definitions(definitions())))
        with local_units(kafka, prefix, node, 1, never) as units:
            scored(player, own)
            plan = made.plan()
            build_deepening(made.ready, plan, history_rows(), SETTINGS)
            made.offer()
            awaited(lambda: all("behind" in (host.following or {}) for host in units[0].loop.hosts.values()))
            old = scored(player, meanwhile)
            with monkeypatch.context() as patch:
                patch.setattr(TakeOver, "_move", lambda *_: None)
                made.install()
                new = scored(player, after.slice(0, 100))
                units[0].halt()
            units[0].loop.abandon()
            units[0].loop.hosts.clear()
        assert not list(node.glob("tasks/*/*/*/moved_to"))
        with local_units(kafka, prefix, node, 1, never):
            new += scored(player, after.slice(100))
            awaited(lambda: len(list(node.glob("tasks/*/*/*/moved_to"))) == 3)
    finally:
        player.close()
    assert old == wanted(tmp_path / "old", own, meanwhile)
    order = pa.concat_tables([through_the_log(history_rows(), accepted_rows(own)), meanwhile])
    assert new == wanted(tmp_path / "new", order, after)


@pytest.mark.timeout(600)
def test_given_up_units_let_go_of_it(kafka: str, tmp_path: Path) -> None:
    prefix, node = own_prefix("d"), tmp_path / "node"
    own = live_rows(BEGIN, NOW)
    made = target(kafka, prefix, node, None)
    player = ClusterPlayer(kafka, prefix)
    try:
        player.registry.change(lambda known: evolution.missing(known, parse_definitions(definitions())))
        with local_units(kafka, prefix, node, 1, SETTINGS) as units:
            scored(player, own)
            assert made.plan().cut_ms == START_MS + BEGIN * 500 + 8_001
            build_deepening(made.ready, made.plan(), history_rows(), SETTINGS)
            made.offer()
            hosts = units[0].loop.hosts.values()
            awaited(lambda: all("behind" in (host.following or {}) for host in hosts))
            assert made.give_up()
            awaited(lambda: not any(host.following for host in hosts))
            awaited(lambda: not [p for h in hosts for p in h.place.folder.iterdir() if len(p.name) == 32])
            assert scored(player, rows(NOW, 50)) == wanted(tmp_path / "old", own, rows(NOW, 50))
    finally:
        player.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("damaged", [[], ["deepening.json"], ["deepening.json", "request.json"]])
def test_given_up_while_no_unit_runs_nothing_is_left(kafka: str, tmp_path: Path, damaged: list[str]) -> None:
    prefix, node = own_prefix("d"), tmp_path / "node"
    made = target(kafka, prefix, node, None)
    player = ClusterPlayer(kafka, prefix)
    never = replace(SETTINGS, checkpoint_interval_s=1e9, replay_s=1e9)
    try:
        player.registry.change(lambda known: evolution.missing(known, parse_definitions(definitions())))
        with local_units(kafka, prefix, node, 1, never) as units:
            scored(player, live_rows(BEGIN, NOW))
            build_deepening(made.ready, made.plan(), history_rows(), SETTINGS)
            made.offer()
            awaited(lambda: all("behind" in (host.following or {}) for host in units[0].loop.hosts.values()))
            units[0].halt()
            units[0].loop.abandon()
            units[0].loop.hosts.clear()
        assert len(built(node)) == 3
        for name in damaged:
            (node / "backfill" / "s" / name).write_text("{")
        assert made.give_up()
        assert not made.give_up()
        assert not built(node)
        with local_units(kafka, prefix, node, 1, never):
            scored(player, rows(NOW, 20))
        assert not list((node / "backfill").rglob("*"))
    finally:
        player.close()


@pytest.mark.timeout(600)
def test_what_a_task_cannot_put_aside_is_shown_by_the_job(kafka: str, tmp_path: Path) -> None:
    prefix, node = own_prefix("d"), tmp_path / "node"
    made = target(kafka, prefix, node, None)
    player = ClusterPlayer(kafka, prefix)
    folder = node / "backfill" / "s"
    try:
        player.registry.change(lambda known: evolution.missing(known, parse_definitions(definitions())))
        with local_units(kafka, prefix, node, 1, SETTINGS) as units:
            scored(player, live_rows(BEGIN, NOW))
            folder.mkdir(parents=True)
            (folder / "own").write_text("")
            with pytest.raises(HistoryError, match=r"s/.*/\d cannot be deepened: .*own"):
                made.plan()
            assert units[0].error is None
            (folder / "own").unlink()
            other = FolderLock(folder)
            with pytest.raises(HistoryError, match="builds there already"):
                made.plan()
            other.release()
            assert made.plan().tasks
    finally:
        player.close()


@pytest.mark.parametrize("is_known", [True, False])
def test_what_tasks_have_been_told_to_take_is_not_given_up(tmp_path: Path, is_known: bool) -> None:
    """Where nobody knows which one it is neither, until every task has what it was told of."""
    made, told = target("localhost:9", "p", tmp_path), "h" * 32
    stream = parse_definitions(definitions()).streams["s"]
    entry = StreamEntry(stream, 1, {}, history=Deepen(9, "s", told, 0))
    folder = tmp_path / "backfill" / "s"
    folder.mkdir(parents=True)
    (folder / "deepening.json").write_text("{")
    if is_known:
        write_request(folder / "request.json", DeepeningRequest(told, 1))
    places = [task_folder(tmp_path, "s", 1, *task) for task in stream.tasks]
    with pytest.raises(HistoryError, match="told to take over"):
        made._built(entry)
    for place in places:
        beside(place, told).mkdir(parents=True)
    (places[0] / "reservoir").mkdir()
    left = beside(places[0], "g" * 32)
    left.mkdir()
    if is_known:
        with pytest.raises(HistoryError, match="told to take over"):
            made._built(entry)
    else:
        assert made._built(entry) == [left]


@pytest.mark.parametrize(
    ("following", "expected"),
    [
        ({"history": "h", "behind": 0, "filling": False}, True),
        ({"history": "h", "behind": 0, "filling": True}, False),
        ({"history": "h", "behind": 1_000_000, "filling": False}, False),
        ({"history": "h", "offer": "1", "failure": "no room"}, False),
        ({"history": "g", "behind": 0, "filling": False}, False),
        (None, False),
    ],
)
def test_a_task_that_fills_a_metric_is_not_near(following: dict[str, Any] | None, expected: bool) -> None:
    assert is_near(status(following=following), "h") == expected
