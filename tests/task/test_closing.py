"""Closing a task: its folder is free afterwards, whatever fails meanwhile."""

from pathlib import Path

import pytest

from railgun.task.settings import TaskSettings
from reservoir.reservoir import Reservoir
from tests.task.small_log import SmallLog, stream_text

SETTINGS = TaskSettings()


def test_the_state_is_let_go_where_the_reservoir_cannot_be_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = SmallLog(stream_text())
    log.event("e", 1_000_000)
    task = log.open(tmp_path, SETTINGS)
    log.feed(task)
    close = Reservoir.close

    def fails(reservoir: Reservoir) -> None:
        close(reservoir)
        raise OSError(5, "planted")

    with monkeypatch.context() as planted:
        planted.setattr(Reservoir, "close", fails)
        with pytest.raises(OSError, match="planted"):
            task.close()
    again = log.open(tmp_path, SETTINGS)
    assert again.position <= len(log.records)
    again.close()
