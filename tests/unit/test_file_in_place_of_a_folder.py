"""A plain file where the folder of one task belongs: that copy fails and says why, and others of its unit answer."""

from collections.abc import Callable
from pathlib import Path

import pytest

from railgun.cluster.copies import CopyState
from railgun.host.place import task_folder
from tests.unit.embedded_unit import KEYS, embedded_unit


def _file(place: Path) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("not a folder")
    return place


def _link_to_nowhere(place: Path) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(place.parent / "nowhere")
    return place


@pytest.mark.parametrize("put", [_file, _link_to_nowhere])
def test_one_copy_fails_and_the_others_answer(put: Callable[[Path], Path], tmp_path: Path) -> None:
    place = put(task_folder(tmp_path / "node", *KEYS[0]))
    with embedded_unit(tmp_path) as unit:
        unit.answers_meanwhile(1)
        assert unit.state(0) is CopyState.FAILED
        assert unit.host(0).failure == (
            f"TaskFolderError: {place}: the folder of a task belongs here, and this is none. Move it away, and start "
            "the node again"
        )
    assert place.is_symlink() or place.read_text() == "not a folder"


def test_a_file_above_the_folders_fails_all_copies_in_it_and_the_unit_goes_on(tmp_path: Path) -> None:
    place = _file(task_folder(tmp_path / "node", *KEYS[0]).parent)
    with embedded_unit(tmp_path) as unit:
        for partition in range(2):
            assert str(unit.host(partition).failure).startswith(f"TaskFolderError: {place}: ")
