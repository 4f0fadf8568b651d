"""History before logs on Kafka: announced to the tasks, taken up by the units of the node that has it ready."""

import errno
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from railgun.catalog.definitions import parse_definitions
from railgun.engine.engine import Engine
from railgun.engine.errors import HistoryRefusedError
from railgun.history.task_folder import copy_folder
from railgun.host import history as host_history
from railgun.registry.kafka_registry import KafkaRegistry
from railgun.spark.backfill.cluster import BackfillOfCluster
from railgun.spark.backfill.source import HistorySource
from railgun.spark.backfill.target import BackfillRequest
from railgun.spark.errors import ColumnError
from tests.broker.own_topics import own_prefix
from tests.engine.histories import build_history
from tests.engine.test_history import CUT_MS, EVENTS, START_MS, definitions, history_rows, rows
from tests.unit.cluster_player import ClusterPlayer
from tests.unit.local_units import SMALL, awaited, local_units, quick_settings

ANOTHER = """
[[metrics]]
sql = "SELECT count(*) AS another FROM s GROUP BY card OVER INFINITE"
"""
SETTINGS = replace(SMALL, chunk_events=32, segment_bytes=1 << 13)


def request(folder: Path, cut_ms: int = CUT_MS) -> BackfillRequest:
    return BackfillRequest(
        folder,
        parse_definitions(definitions()),
        HistorySource.of(["h.parquet"]),
        {},
        cut_ms,
        settings=SETTINGS,
    )


def without_fate(reply: dict[str, Any]) -> dict[str, Any]:
    return {name: reply[name] for name in ("id", "time", "metrics", "duplicate") if name in reply}


@pytest.mark.timeout(600)
def test_units_begin_anew_behind_a_history(kafka: str, tmp_path: Path) -> None:
    prefix = own_prefix("h")
    node, target = (
        tmp_path / "node",
        BackfillOfCluster(request(tmp_path / "node"), quick_settings(kafka), prefix),
    )
    plan = target.plan()
    early = rows(EVENTS - 20, 60).to_pylist()
    later = rows(EVENTS + 10, 200).to_pylist()
    first, second = ClusterPlayer(kafka, prefix), ClusterPlayer(kafka, prefix, 2)
    try:
        with local_units(kafka, prefix, node, 2, SETTINGS) as units:
            for event in early:
                first.front_end.send(first.registry.snapshot().catalog.streams["s"], [event])
            first.front_end.await_all()
            build_history(target.ready, plan, history_rows(), SETTINGS)
            wanted = parse_definitions(definitions() + ANOTHER)
            too_early = replace(request(node, START_MS), definitions=wanted)
            with pytest.raises(HistoryRefusedError, match="would be missing"):
                BackfillOfCluster(too_early, quick_settings(kafka), prefix).plan()
            assert "another" not in first.registry.snapshot().catalog.entry("s").metrics
            target.install()
            second.front_end.send(second.registry.snapshot().catalog.streams["s"], later)
            second.front_end.await_all()
            held = {str(h.place.identity): h.task.history for u in units for h in u.loop.hosts.values()}
            assert held == dict.fromkeys(("s/card/0", "s/card/1", "s/*/0"), plan.history)
            with pytest.raises(HistoryRefusedError, match="has a history already"):
                target.plan()
        with local_units(kafka, prefix, node, 1, SETTINGS):
            last = rows(EVENTS + 210, 40).to_pylist()
            second.front_end.send(second.registry.snapshot().catalog.streams["s"], last)
            second.front_end.await_all()
        got = second.front_end.replies()
    finally:
        first.close()
        second.close()
    with Engine(tmp_path / "log", durability="os") as reference:
        reference.apply(definitions())
        reference.score_table("s", history_rows())
        reference.score_many("s", early)
        wanted = reference.score_many("s", [*later, *last])
    assert [without_fate(each) for each in got] == [without_fate(dict(each)) for each in wanted]


def _cannot_be_copied(made: Path, to: Path) -> None:
    """As `copy_folder` for all tasks but one."""
    if made.parent.name == "all":
        raise OSError(errno.ENOSPC, "No space left on device", str(to))
    copy_folder(made, to)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("lacks", ["history", "room"])
def test_a_task_whose_node_lacks_what_it_needs_stops_until_it_has_it(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacks: str
) -> None:
    prefix = own_prefix("h")
    target = BackfillOfCluster(request(tmp_path / "node"), quick_settings(kafka), prefix)
    build_history(target.ready, target.plan(), history_rows(), SETTINGS)
    elsewhere = target.ready / "all" / "0"
    player = ClusterPlayer(kafka, prefix)
    try:
        target.install()
        if lacks == "history":
            elsewhere.rename(tmp_path / "elsewhere")
        else:
            monkeypatch.setattr(host_history, "copy_folder", _cannot_be_copied)
        with local_units(kafka, prefix, tmp_path / "node", 1, SETTINGS) as units:
            hosts = units[0].loop.hosts

            def all_known() -> bool:
                return len(hosts) == 3 and all(
                    h.failure or (h.is_ready and h.task.history) for h in hosts.values()
                )

            awaited(all_known)
            failed = {str(h.place.identity): h.failure for h in hosts.values() if h.failure}
            assert list(failed) == ["s/*/0"]
            said = "was put before its log" if lacks == "history" else "No space left on device"
            assert said in str(failed["s/*/0"])
        if lacks == "history":
            (tmp_path / "elsewhere").rename(elsewhere)
        monkeypatch.undo()
        with local_units(kafka, prefix, tmp_path / "node", 1, SETTINGS) as units:
            hosts = units[0].loop.hosts
            awaited(all_known)
            assert not [h.failure for h in hosts.values() if h.failure]
    finally:
        player.close()


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_what_is_refused_before_work_starts_registers_nothing(
    spark: SparkSession, kafka: str, tmp_path: Path
) -> None:
    prefix, history = own_prefix("h"), tmp_path / "h.parquet"
    pq.write_table(history_rows(), history)
    asked = replace(request(tmp_path / "node"), source=HistorySource.of([str(history)]))
    wrong = replace(asked, columns={"id": "nonsense(1)"})
    with pytest.raises(ColumnError):
        BackfillOfCluster(wrong, quick_settings(kafka), prefix).build(lambda: spark)
    with KafkaRegistry(quick_settings(kafka), prefix) as registry:
        assert not registry.snapshot().catalog.streams
    BackfillOfCluster(asked, quick_settings(kafka), prefix).build(lambda: spark)
    with KafkaRegistry(quick_settings(kafka), prefix) as registry:
        assert list(registry.snapshot().catalog.streams) == ["s"]
