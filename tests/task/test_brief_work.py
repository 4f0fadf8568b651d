"""A brief bit of background work ends behind the part that took its time, and the next one goes on there."""

from pathlib import Path
from typing import Any

import pytest

from railgun.task.processor import TaskProcessor
from railgun.task.settings import TaskSettings
from tests.task.small_log import SmallLog, stream_text


def parts_of(task: TaskProcessor, patch: pytest.MonkeyPatch) -> list[str]:
    """Notes which parts are done, in order; each has nothing more to do."""
    done: list[str] = []
    for owner, name, part in (
        (task.table, "touch_ahead", "rows"),
        (task.fills, "step", "fills"),
        (task.sweep, "step", "sweep"),
        (task.checkpoints, "step", "checkpoint"),
    ):

        def step(*_: Any, part: str = part) -> bool:
            done.append(part)
            return False

        patch.setattr(owner, name, step)
    for name in ("let_go", "upgrade"):
        patch.setattr(task.table, name, lambda _: False)
    return done


@pytest.mark.parametrize("slow", [False, True])
def test_parts_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: bool) -> None:
    clock_s = [0.0]

    def now() -> float:
        clock_s[0] += 0.001 * slow
        return clock_s[0]

    log = SmallLog(stream_text())
    task = log.open(tmp_path, TaskSettings(), now=now)
    try:
        log.feed(task)
        clock_s[0] += 10
        done = parts_of(task, monkeypatch)
        order = ["rows", "fills", "sweep", "checkpoint"]
        if not slow:
            assert not task.work(brief=True)
            assert done == order
            return
        assert [task.work(brief=True) for _ in range(6)] == [True] * 6, "there may be more behind the part"
        assert done == [*order, *order[:2]]
        done.clear()
        assert not task.work(), "who has time does them all"
        assert sorted(done) == sorted(order)
    finally:
        task.close()
