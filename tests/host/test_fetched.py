"""Fetched data takes the place of a task's own at any crash, once it is verified and not before."""

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from railgun.history import durable_files
from railgun.host import fetched
from railgun.host.fetched import (
    FETCHED,
    FOLDER_ID,
    fetching_folder,
    folder_id,
    forget_fetch,
    replaced_folder,
    take_fetched,
)
from railgun.state.errors import StoreLockedError
from railgun.state.lock import FolderLock
from tests.host.fetched_folder import mark_verified

_MOST_STEPS = 30


class _CrashError(Exception):
    pass


def _made(folder: Path, content: str, *, is_verified: bool = False) -> None:
    (folder / "state").mkdir(parents=True)
    for number in range(3):
        (folder / "state" / f"{number}.sst").write_text(content)
    if is_verified:
        mark_verified(folder)


def _content(folder: Path) -> set[str]:
    return {path.read_text() for path in (folder / "state").iterdir()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "k" / "0"


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.parent.iterdir()}


def test_verified_data_replaces_the_own(folder: Path) -> None:
    _made(folder, "own")
    before = folder_id(folder, "a1")
    _made(fetching_folder(folder), "fetched", is_verified=True)
    assert take_fetched(folder, was_ordered=True)
    assert _content(folder) == {"fetched"}
    assert _names(folder) == {"0"}
    assert {path.name for path in folder.iterdir()} == {"state"}
    assert (before, folder_id(folder, "b2")) == ("a1", "b2")
    assert not take_fetched(folder, was_ordered=True)
    assert folder_id(folder, "c3") == "b2"


@pytest.mark.parametrize("has_own", [False, True])
def test_what_is_not_verified_stays_beside_it(folder: Path, has_own: bool) -> None:
    if has_own:
        _made(folder, "own")
    _made(fetching_folder(folder), "fetched")
    assert not take_fetched(folder, was_ordered=True)
    assert _content(fetching_folder(folder)) == {"fetched"}
    assert folder.exists() is has_own
    forget_fetch(folder)
    assert _names(folder) == ({"0"} if has_own else set())


def test_nothing_is_replaced_while_a_process_has_it_open(folder: Path) -> None:
    _made(folder, "own")
    _made(fetching_folder(folder), "fetched", is_verified=True)
    lock = FolderLock(folder / "state")
    with pytest.raises(StoreLockedError):
        take_fetched(folder, was_ordered=True)
    lock.release()
    assert take_fetched(folder, was_ordered=True)


def test_own_data_returns_if_the_fetched_is_gone(folder: Path) -> None:
    _made(replaced_folder(folder), "own")
    assert not take_fetched(folder, was_ordered=True)
    assert _content(folder) == {"own"}


def test_nobody_can_open_it_while_it_is_replaced(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit that does not know yet that another one has the copy."""
    _made(folder, "own")
    FolderLock(folder / "state").release()
    _made(fetching_folder(folder), "fetched", is_verified=True)
    rename, tries = Path.rename, list[Path]()

    def renamed(path: Path, to: Path) -> Path:
        if path == folder:
            tries.append(path)
            with pytest.raises(StoreLockedError):
                FolderLock(folder / "state")
        return rename(path, to)

    monkeypatch.setattr(Path, "rename", renamed)
    assert take_fetched(folder, was_ordered=True)
    assert tries == [folder]


@pytest.mark.parametrize("change", [lambda file: file.unlink(), lambda file: file.write_text("")])
def test_data_of_which_files_are_gone_is_not_taken(folder: Path, change: Callable[[Path], object]) -> None:
    """A unit that has opened the own data deletes what comes, also while the transfer process writes FETCHED."""
    _made(folder, "own")
    fetching = fetching_folder(folder)
    _made(fetching, "fetched", is_verified=True)
    change(fetching / "state" / "1.sst")
    assert not take_fetched(folder, was_ordered=True)
    assert _content(folder) == {"own"}


def test_a_crash_while_it_is_forgotten_leaves_nothing_that_counts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(3):
        _made(fetching_folder(folder), "fetched", is_verified=True)
        with monkeypatch.context() as patch:
            _crashing(patch, at)
            with pytest.raises(_CrashError):
                forget_fetch(folder)
        found = fetching_folder(folder)
        assert not found.exists() or len(list((found / "state").iterdir())) == 3
        assert take_fetched(folder, was_ordered=True) is (at < 2)
        shutil.rmtree(folder, ignore_errors=True)


def test_what_a_crash_leaves_is_whole_if_somebody_deletes_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documentation names that as a remedy."""
    for at in range(_MOST_STEPS):
        folder = tmp_path / str(at) / "0"
        _made(folder, "own")
        _made(replaced_folder(folder), "older")
        _made(fetching_folder(folder), "fetched", is_verified=True)
        with monkeypatch.context() as patch:
            _crashing(patch, at)
            with contextlib.suppress(_CrashError):
                take_fetched(folder, was_ordered=True)
                return
        shutil.rmtree(folder, ignore_errors=True)
        take_fetched(folder, was_ordered=True)
        assert not folder.exists() or len(list((folder / "state").iterdir())) == 3
    raise AssertionError("it has more steps")


def _crashing(patch: pytest.MonkeyPatch, at: int) -> None:
    """Let the step of this number, and each after it, fail; a deletion of a folder has deleted a part."""
    left = at

    def before(do: Callable[..., Any]) -> Any:
        def step(path: Path, *arguments: Any, **more: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                if do is rmtree:
                    for part in sorted(path.rglob("*.sst"))[:2]:
                        os.unlink(part)
                raise _CrashError
            return do(path, *arguments, **more)

        return step

    rmtree = shutil.rmtree
    patch.setattr(shutil, "rmtree", before(rmtree))
    patch.setattr(Path, "rename", before(Path.rename))
    patch.setattr(Path, "unlink", before(Path.unlink))
    for module in (fetched, durable_files):
        patch.setattr(module, "make_durable", before(fetched.make_durable))


@pytest.mark.parametrize("has_own", [False, True])
@pytest.mark.parametrize("has_replaced", [False, True])
def test_the_next_start_finishes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_own: bool, has_replaced: bool
) -> None:
    for at in range(_MOST_STEPS):
        folder = tmp_path / str(at) / "0"
        if has_own:
            _made(folder, "own")
            folder_id(folder, "a1")
        if has_replaced:
            _made(replaced_folder(folder), "older")
        _made(fetching_folder(folder), "fetched", is_verified=True)
        with monkeypatch.context() as patch:
            _crashing(patch, at)
            try:
                take_fetched(folder, was_ordered=True)
                is_over = True
            except _CrashError:
                is_over = False
        assert take_fetched(folder, was_ordered=True) or is_over or not (folder / FETCHED).exists()
        assert _content(folder) == {"fetched"}
        assert _names(folder) == {"0"}
        assert not (folder / FOLDER_ID).exists()
        if is_over:
            return
    raise AssertionError("it has more steps")
