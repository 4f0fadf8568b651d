"""What was built elsewhere is brought to the data folder whole, and stays there after a loss of power."""

import os
from pathlib import Path

import pytest

from railgun.catalog.definitions import parse_definitions
from railgun.engine.engine import Engine
from railgun.engine.errors import HistoryRefusedError
from railgun.spark.backfill.build import TASKS
from railgun.spark.backfill.engine import BackfillOfEngine, DeepeningOfEngine
from railgun.spark.backfill.service import DeepeningOfService
from railgun.spark.backfill.source import HistorySource
from railgun.spark.backfill.target import BackfillRequest, BackfillTarget
from railgun.spark.errors import HistoryError
from tests.engine.test_history import STREAM, definitions, rows
from tests.files.syncing import synced_files


@pytest.mark.parametrize(
    ("target", "remedy"),
    [
        (BackfillOfEngine, "stop the server that runs there for a moment"),
        (DeepeningOfEngine, "name the server that runs there with --url"),
    ],
)
def test_a_folder_in_use_has_one_remedy(tmp_path: Path, target: type[BackfillTarget], remedy: str) -> None:
    request = BackfillRequest(
        tmp_path, parse_definitions(definitions()), HistorySource(("h",), "parquet"), {}, 0
    )
    with Engine(tmp_path), pytest.raises(HistoryError) as told:
        target(request).plan()
    assert str(told.value) == (
        f"{tmp_path}: the folder is in use by process {os.getpid()}; {remedy}, then run this again: what was built is "
        "kept"
    )


def test_a_folder_with_other_work_is_refused_before_anything_is_registered(tmp_path: Path) -> None:
    data, work = tmp_path / "data", tmp_path / "work"
    work.mkdir()
    (work / "backfill.json").write_text('{"fingerprint": "f", "said": "something else"}')
    source = HistorySource(("h",), "parquet")
    target = BackfillOfEngine(BackfillRequest(data, parse_definitions(definitions()), source, {}, 0, work))
    with pytest.raises(HistoryError, match="of another backfill"):
        target.build(lambda: pytest.fail("Spark is not wanted yet"))
    assert not data.exists()


@pytest.mark.parametrize("line", ['id = "id"\n', 'time = "ts"\n'])
def test_a_stream_that_cannot_have_history_is_not_created(tmp_path: Path, line: str) -> None:
    wanted = parse_definitions(definitions().replace(line, ""))
    request = BackfillRequest(tmp_path / "data", wanted, HistorySource(("h",), "parquet"), {}, 0)
    with pytest.raises(HistoryRefusedError, match="say which field it is"):
        BackfillOfEngine(request).build(lambda: pytest.fail("Spark is not wanted yet"))
    assert not (tmp_path / "data").exists()


def test_a_cut_that_leaves_a_hole_registers_no_metric(tmp_path: Path) -> None:
    with Engine(tmp_path, durability="os") as engine:
        engine.apply(STREAM.format(dedup=100))
        engine.score_table("s", rows(0, 5))
    request = BackfillRequest(
        tmp_path, parse_definitions(definitions()), HistorySource(("h",), "parquet"), {}, 0
    )
    with pytest.raises(HistoryRefusedError, match="choose a later --until"):
        BackfillOfEngine(request).plan()
    with Engine(tmp_path, durability="os") as engine:
        assert engine.metrics("s") == []


def test_a_server_that_is_gone_before_it_installs_leaves_what_was_built(tmp_path: Path) -> None:
    source = HistorySource(("h",), "parquet")
    request = BackfillRequest(tmp_path, parse_definitions(definitions()), source, {}, 0)
    with pytest.raises(HistoryError, match="what was built is kept: run this again once the server answers"):
        DeepeningOfService(request, "http://127.0.0.1:1").install()


def test_what_is_brought_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, work = tmp_path / "data", tmp_path / "work"
    for name in ("reservoir/1.seg", "state/2.sst", "history/manifest.json"):
        place = work / TASKS / "all" / "0" / name
        place.parent.mkdir(parents=True)
        place.write_text(name)
    source = HistorySource(("lake",), "parquet", {})
    target = BackfillOfEngine(BackfillRequest(data, parse_definitions(definitions()), source, {}, 0, work))
    with synced_files(monkeypatch) as synced:
        target.bring()
    brought = list(target.ready.rglob("*"))
    assert len(brought) == 8
    assert all(path.stat().st_ino in synced for path in (*brought, target.ready, data))
