"""Deepenings in which something fails: nothing that a task needs is removed, and they can be brought to their end."""

import errno
import shutil
from pathlib import Path
from typing import Any

import pytest

from railgun.engine import stream_hosts
from railgun.engine.deepening.deepening import Deepening
from railgun.engine.deepening.steps import DeepeningSteps
from railgun.engine.engine import Engine
from railgun.engine.errors import HistoryRefusedError
from railgun.engine.stream_hosts import StreamHosts
from railgun.host.deepening import take_over
from railgun.messaging.embedded.log import EmbeddedLog
from railgun.registry import evolution
from railgun.registry.errors import EngineError
from railgun.registry.topics import topic_of
from tests.engine.deepening.deepened import build_deepening
from tests.engine.deepening.test_deepening import BEGIN, CUT_MS, NOW, built, history_rows, live, scored
from tests.engine.test_history import SETTINGS, definitions, engine, rows, tasks


def no_room(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def damage(place: Path) -> None:
    data = bytearray(place.read_bytes())
    data[5] ^= 0xFF
    place.write_bytes(data)


def ends(log: EmbeddedLog) -> dict[tuple[str, int], int]:
    return {(name, at): log.end_offset(name, at) for name, n in log.topics().items() for at in range(n)}


def test_the_log_is_durable_before_the_plan_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync = EmbeddedLog.sync
    synced: list[dict[tuple[str, int], int]] = []
    plan_file = tmp_path / "backfill" / "s" / "deepening.json"

    def noted(log: EmbeddedLog) -> None:
        if not plan_file.exists():
            synced.append(ends(log))
        sync(log)

    with Engine(tmp_path, durability="os", settings=SETTINGS) as opened:
        opened.apply(definitions())
        scored(opened, rows(0, 500))
        monkeypatch.setattr(EmbeddedLog, "sync", noted)
        plan = opened.begin_deepening("s")
        assert synced
        assert all(
            own.position <= synced[-1][topic_of("s", name), at] for (name, at), own in plan.own.items()
        )


def test_a_log_that_lost_what_a_deepening_was_made_of(tmp_path: Path) -> None:
    """A loss of power under durability "os"."""
    lost = tmp_path / "lost"
    with engine(tmp_path / "whole") as opened:
        opened.apply(definitions())
        scored(opened, rows(BEGIN, 1000))
    shutil.copytree(tmp_path / "whole", lost)
    with engine(tmp_path / "whole") as opened:
        scored(opened, rows(BEGIN + 1000, 200))
        plan = opened.begin_deepening("s")
        shutil.copytree(tmp_path / "whole" / "backfill", lost / "backfill")
        build_deepening(lost / "backfill" / "s" / "tasks", plan, history_rows(), SETTINGS)
    with engine(lost) as opened:
        scored(opened, rows(BEGIN + 2000, 500))
        standing = opened.deepening("s")
        assert standing is not None
        assert standing.state == "damaged"
        with pytest.raises(HistoryRefusedError, match="records that it was made of are gone; give it up"):
            opened.deepen("s")
    with engine(lost) as opened:
        assert opened.deepening("s") is None
        assert [task.history for task in tasks(opened)] == [""] * 3
        scored(opened, rows(BEGIN + 3000, 50))


def test_after_pointers_could_not_be_written_nothing_is_given_up_and_installing_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live(tmp_path)
    with engine(tmp_path) as opened:
        built(tmp_path, opened)
        history = opened.begin_deepening("s").history
        with monkeypatch.context() as patch:
            patch.setattr(take_over, "move_to", no_room)
            for _ in range(2):
                with pytest.raises(EngineError, match="No space left"):
                    opened.deepen("s")
                standing = opened.deepening("s")
                assert standing is not None
                assert standing.state == "installing"
                with pytest.raises(HistoryRefusedError, match="answer already"):
                    opened.give_up_deepening("s")
        scored(opened, rows(NOW, 300))
        opened.deepen("s")
        assert opened.deepening("s") is None
        assert not opened._streams._deepenings.kept
    with engine(tmp_path) as opened:
        assert [task.history for task in tasks(opened)] == [history] * 3
        scored(opened, rows(NOW + 300, 50))


def test_the_next_one_may_begin_while_what_is_left_of_one_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = Deepening.remove
    begun: list[str] = []
    live(tmp_path)
    with engine(tmp_path) as opened:
        built(tmp_path, opened)

        def slow(ended: Deepening) -> None:
            begun.append(opened.begin_deepening("s", CUT_MS + 1).history)
            remove(ended)

        with monkeypatch.context() as patch:
            patch.setattr(Deepening, "remove", slow)
            opened.deepen("s")
        assert len(begun) == 1
        built(tmp_path, opened, CUT_MS + 1)
        opened.deepen("s")
        assert [path.name for path in (tmp_path / "backfill").iterdir()] == []


@pytest.mark.parametrize("point", ["begun", "appended", "taken over"])
@pytest.mark.parametrize("remedy", [False, True])
def test_a_plan_damaged_after_the_take_over_is_not_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, remedy: bool
) -> None:
    """Neither where its folder was removed, as its text says."""
    points = {
        "begun": (StreamHosts, "replace"),
        "appended": (stream_hosts, "catch_up"),
        "taken over": (take_over, "move_to"),
    }
    live(tmp_path)
    opened = engine(tmp_path)
    try:
        built(tmp_path, opened)
        history = opened.begin_deepening("s").history
        with monkeypatch.context() as patch:
            patch.setattr(*points[point], no_room)
            with pytest.raises(EngineError, match="No space left"):
                opened.deepen("s")
    finally:
        opened.close(checkpoint=False)
    damage(tmp_path / "backfill" / "s" / "deepening.json")
    if remedy:
        shutil.rmtree(tmp_path / "backfill" / "s")
    for _ in range(2):
        with engine(tmp_path) as opened:
            assert [task.history for task in tasks(opened)] == [history] * 3
            assert opened.deepening("s") is None
            scored(opened, rows(NOW, 50))
    assert not (tmp_path / "backfill" / "s").exists()


def test_a_damaged_plan_keeps_no_stream_from_opening(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    live(tmp_path)
    with engine(tmp_path) as opened:
        built(tmp_path, opened)
    damage(tmp_path / "backfill" / "s" / "deepening.json")
    with engine(tmp_path) as opened:
        assert "the deepening of s is damaged" in caplog.text
        standing = opened.deepening("s")
        assert standing is not None
        assert standing.state == "damaged"
        assert "give the deepening up" in (standing.failure or "")
        scored(opened, rows(NOW, 50))
        for call in (opened.deepen, opened.begin_deepening):
            with pytest.raises(HistoryRefusedError, match="give the deepening up"):
                call("s")
        assert opened.give_up_deepening("s")
        assert not (tmp_path / "backfill" / "s").exists()
        built(tmp_path, opened)
        opened.deepen("s")
        scored(opened, rows(NOW + 50, 50))


@pytest.mark.parametrize("step", ["take_over", "is_settled"])
def test_a_stream_dropped_while_it_is_installed_leaves_its_name_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """What has its name by then is another's, whose tasks are in no folder that was built."""
    live(tmp_path)
    with engine(tmp_path) as opened:
        built(tmp_path, opened)
        streams, real = opened._streams, getattr(DeepeningSteps, step)
        dropped: list[bool] = []

        def dropping(steps: DeepeningSteps, deepening: Deepening, *origin: Any) -> bool:
            if not dropped:
                dropped.append(True)
                streams.change([evolution.dropped_stream(streams.catalog, "s")])
                streams.change(evolution.missing(streams.catalog, evolution.read_definitions(definitions())))
            return real(steps, deepening, *origin)

        monkeypatch.setattr(DeepeningSteps, step, dropping)
        with pytest.raises(HistoryRefusedError, match="was given up"):
            opened.deepen("s")
        monkeypatch.undo()
        scored(opened, rows(NOW, 50))
    with engine(tmp_path) as opened:
        assert [task.history for task in tasks(opened)] == [""] * 3
        assert not list(tmp_path.glob("streams/s/*/*/moved_to"))
        scored(opened, rows(NOW + 50, 50))


def test_one_that_cannot_be_closed_keeps_no_other_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    live(tmp_path)
    with engine(tmp_path) as opened:
        built(tmp_path, opened)

        def given_up(*_: Any) -> bool:
            successors = [host.take_over.successor for host in opened._streams.live("s").hosts]
            if successors[0] is None:
                return False
            close = successors[0].task.close

            def fails() -> None:
                close()
                no_room()

            monkeypatch.setattr(successors[0].task, "close", fails)
            raise HistoryRefusedError("given up")

        with monkeypatch.context() as patch:
            patch.setattr(DeepeningSteps, "take_over", given_up)
            with pytest.raises(HistoryRefusedError, match="given up"):
                opened.deepen("s")
        assert "was not closed: " in caplog.text
        opened.deepen("s")
