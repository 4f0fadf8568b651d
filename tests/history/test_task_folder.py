"""Where a task's files are: beside its place once it was deepened, and nothing else is left there."""

import errno
from pathlib import Path

import pytest

from railgun.history.manifest import MANIFEST_PLACE
from railgun.history.task_folder import beside, current_folder, move_to, remove_others, take_in
from railgun.task.errors import HistoryDamagedError
from tests.files.syncing import synced_files

OWN = ("reservoir", "state", "history")


def made_task(folder: Path) -> Path:
    for name in OWN:
        (folder / name).mkdir(parents=True)
    (folder / MANIFEST_PLACE).write_text("{}")
    return folder


def test_a_folder_is_taken_in_and_moved_to(tmp_path: Path) -> None:
    place, ready = made_task(tmp_path / "0"), made_task(tmp_path / "ready" / "0")
    assert current_folder(place) == place
    take_in(ready, place, "h1")
    assert sorted(path.name for path in ready.iterdir()) == sorted(OWN), "others may take it too"
    assert current_folder(place) == place
    move_to(place, "h1")
    assert current_folder(place) == beside(place, "h1")
    remove_others(place)
    assert sorted(path.name for path in place.iterdir()) == ["h1", "moved_to"]
    take_in(made_task(tmp_path / "again" / "0"), place, "h2")
    move_to(place, "h2")
    remove_others(place)
    assert sorted(path.name for path in place.iterdir()) == ["h2", "moved_to"]
    assert sorted(path.name for path in current_folder(place).iterdir()) == sorted(OWN)


def test_every_byte_is_durable_before_it_is_moved_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, ready = made_task(tmp_path / "0"), made_task(tmp_path / "ready" / "0")
    (ready / "reservoir" / "1.seg").write_bytes(b"rows")
    with synced_files(monkeypatch) as synced:
        take_in(ready, place, "h1")
    for path in beside(place, "h1").rglob("*"):
        assert path.stat().st_ino in synced
    assert (ready / MANIFEST_PLACE).stat().st_ino in synced
    assert place.stat().st_ino in synced


def test_what_was_never_moved_to_is_removed(tmp_path: Path) -> None:
    place = made_task(tmp_path / "0")
    take_in(made_task(tmp_path / "ready" / "0"), place, "h1")
    remove_others(place)
    assert sorted(path.name for path in place.iterdir()) == sorted(OWN)


@pytest.mark.parametrize("text", [b"", b"gone", b"../0", b"\xff"])
def test_a_pointer_to_nowhere_is_damage(tmp_path: Path, text: bytes) -> None:
    place = made_task(tmp_path / "0")
    (place / "moved_to").write_bytes(text)
    with pytest.raises(HistoryDamagedError, match="restore the folder from a copy"):
        current_folder(place)


@pytest.mark.parametrize("links", [True, False])
def test_what_is_written_to_is_copied_and_all_else_where_nothing_can_be_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    place, ready = made_task(tmp_path / "0"), made_task(tmp_path / "ready" / "0")
    names = ("reservoir/1.seg", "reservoir/2.seg", "state/7.sst", "state/MANIFEST-1")
    for name in names:
        (ready / name).write_text(name)

    def refused(self: Path, target: Path) -> None:
        raise OSError(errno.EXDEV, "it is in another file system")

    if not links:
        monkeypatch.setattr(Path, "hardlink_to", refused)
    # Left by one that was cut off.
    (place / "h1.coming").mkdir()
    take_in(ready, place, "h1")
    taken = beside(place, "h1")
    assert [(taken / name).read_text() for name in names] == list(names)
    shared = [name for name in names if (taken / name).stat().st_ino == (ready / name).stat().st_ino]
    assert shared == (["reservoir/1.seg", "state/7.sst"] if links else [])
    (taken / "reservoir" / "2.seg").write_text("more rows")
    assert (ready / "reservoir" / "2.seg").read_text() == "reservoir/2.seg"
    assert not (place / "h1.coming").exists()
