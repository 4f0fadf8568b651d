"""Deepenings in which something fails: nothing that a task needs is removed, and they can be brought to their end."""

import errno
from pathlib import Path

import pytest

from railgun.engine import deepening
from railgun.engine.deepening import Deepening
from railgun.engine.errors import EngineError, HistoryRefusedError
from tests.engine.test_deepening import BEGIN, CUT_MS, NOW, built, live_rows, scored
from tests.engine.test_history import definitions, engine, rows, tasks


def no_room(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_after_pointers_could_not_be_written_nothing_is_given_up_and_installing_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine(tmp_path) as opened:
        opened.apply(definitions())
        scored(opened, live_rows(BEGIN, NOW))
        built(tmp_path, opened)
        history = opened.begin_deepening("s").history
        with monkeypatch.context() as patch:
            patch.setattr(deepening, "move_to", no_room)
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
        assert not opened._streams.deepenings.kept
    with engine(tmp_path) as opened:
        assert [task.history for task in tasks(opened)] == [history] * 3
        scored(opened, rows(NOW + 300, 50))


def test_the_next_one_may_begin_while_what_is_left_of_one_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = Deepening.remove
    begun: list[str] = []
    with engine(tmp_path) as opened:
        opened.apply(definitions())
        scored(opened, live_rows(BEGIN, NOW))
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
