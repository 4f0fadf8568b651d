"""A folder that is deleted is there as a whole or not at all, whenever that is cut off."""

import os
import shutil
from pathlib import Path

import pytest

from railgun.history import durable_files
from railgun.history.durable_files import remove_rest, remove_whole


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "0"
    (made / "state").mkdir(parents=True)
    (made / "state" / "CURRENT").write_text("x")
    return made


def test_it_has_no_name_any_more_before_a_file_of_it_goes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[tuple[str, list[str]]] = []
    rmtree = shutil.rmtree

    def note(step: str) -> None:
        found.append((step, sorted(os.listdir(folder.parent))))

    def removed(path: Path, *arguments: object, **more: bool) -> None:
        note(f"delete {path.name}")
        rmtree(path, **more)

    monkeypatch.setattr(durable_files, "make_durable", lambda path: note(f"sync {path.name}"))
    monkeypatch.setattr(shutil, "rmtree", removed)
    remove_whole(folder)
    above = folder.parent.name
    assert found == [
        ("delete 0.gone", ["0"]),
        (f"sync {above}", ["0.gone"]),
        ("delete 0.gone", ["0.gone"]),
    ]
    assert not list(folder.parent.iterdir())


def test_what_a_crash_has_left_goes_later(folder: Path) -> None:
    left = folder.with_name("0.gone")
    shutil.copytree(folder, left)
    remove_rest(folder)
    assert [path.name for path in folder.parent.iterdir()] == ["0"]
    remove_rest(folder)
    shutil.copytree(folder, left)
    remove_whole(folder)
    assert not list(folder.parent.iterdir())
