"""The check of a task's folder, while other tasks of the node make the folders that it shares with them."""

import os
from pathlib import Path
from typing import Any

import pytest

from railgun.catalog.task_key import TaskKey
from railgun.host.place import Place, task_folder
from railgun.messaging.transport import TopicPartition
from railgun.task.settings import TaskIdentity


def test_a_folder_that_another_task_makes_meanwhile_is_taken_for_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = task_folder(tmp_path, "payments", 1, "card", 0)
    shared, look = folder.parents[1], Path.stat

    def made_after_the_look(path: Path, **follow: Any) -> os.stat_result:
        try:
            return look(path, **follow)
        finally:
            if path == shared:
                os.makedirs(path, exist_ok=True)

    monkeypatch.setattr(Path, "stat", made_after_the_look)
    identity = TaskIdentity("payments", "card", 0, bytes(16))
    where = TopicPartition("payments.card", 0)
    Place(TaskKey("payments", 1, "card", 0), identity, where, folder, tmp_path / "history").check_folder()
    assert shared.is_dir()
