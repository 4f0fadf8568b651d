"""A node says which histories its copies could be made with: those of which it has every task's built folder."""

import shutil
import threading
from pathlib import Path

import pytest

from railgun.catalog.catalog import Catalog, missing_changes
from railgun.catalog.changes import AddHistory
from railgun.catalog.definitions import parse_definitions
from railgun.history.manifest import HistoryManifest, installed_folder, ready_folder, write_manifest
from railgun.host.place import history_folder
from railgun.node.leader import built_histories
from railgun.node.leader.built_histories import BuiltHistories
from tests.unit.processes import DEFINITIONS


@pytest.fixture
def catalog() -> Catalog:
    made = Catalog()
    for change in missing_changes(made, parse_definitions(DEFINITIONS))[0]:
        made.apply(change)
    made.apply(AddHistory(made.last_place + 1, "s", "h1", 5, made.last_place))
    return made


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(built_histories, "_LOOK_S", 0.0)


def build(data: Path, catalog: Catalog, history: str) -> Path:
    for key in catalog.task_keys:
        folder = history_folder(data, key.stream, key.partitioner, key.partition)
        folder.mkdir(parents=True)
        write_manifest(
            folder,
            HistoryManifest(
                history, key.created, key.stream, key.partitioner, key.partition, 5, 0, 0, None, None, None
            ),
        )
    return ready_folder(data, "s")


def found(data: Path, catalog: Catalog) -> list[str]:
    """What a node that has just started says."""
    return BuiltHistories(data).among(catalog)


def test_a_history_is_there_when_it_is_ready_and_when_it_is_kept(tmp_path: Path, catalog: Catalog) -> None:
    assert found(tmp_path, catalog) == []
    ready = build(tmp_path, catalog, "h1")
    assert found(tmp_path, catalog) == ["h1"]
    kept = installed_folder(ready, "h1")
    kept.parent.mkdir()
    ready.rename(kept)
    assert found(tmp_path, catalog) == ["h1"]
    # What is built for another deepening does not hide it, and is none that the stream has.
    build(tmp_path, catalog, "h2")
    assert found(tmp_path, catalog) == ["h1"]
    shutil.rmtree(kept)
    assert found(tmp_path, catalog) == []


def test_a_history_of_which_a_task_is_missing_is_not_there(tmp_path: Path, catalog: Catalog) -> None:
    build(tmp_path, catalog, "h1")
    last = list(catalog.task_keys)[-1]
    shutil.rmtree(history_folder(tmp_path, last.stream, last.partitioner, last.partition))
    assert found(tmp_path, catalog) == []


def test_while_the_shared_folder_does_not_answer_what_was_found_counts(
    tmp_path: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path, catalog, "h1")
    looks = BuiltHistories(tmp_path)
    assert looks.among(catalog) == ["h1"]
    hangs, asked = threading.Event(), []

    def hang(*where: object) -> bool:
        asked.append(where)
        hangs.wait(60)
        return False

    monkeypatch.setattr(built_histories, "has_built", hang)
    try:
        for _ in range(5):
            assert looks.among(catalog) == ["h1"]
        assert len(asked) == 1
    finally:
        hangs.set()
