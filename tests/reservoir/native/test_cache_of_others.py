"""Compiled kernels are code that is run: a cache that other users may write to is not used, and that is said."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from reservoir.native import cache, image
from reservoir.native.cache import cache_folder, numba_folder, others_may_write


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that RAILGUN_KERNEL_CACHE names."""
    base = tmp_path / "kernels"
    base.mkdir(mode=0o700)
    monkeypatch.setenv("RAILGUN_KERNEL_CACHE", str(base))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    for each in (cache_folder, numba_folder, image.path):
        each.cache_clear()
    yield base
    for each in (cache_folder, numba_folder, image.path):
        each.cache_clear()


def test_its_own(base: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = os.umask(0)
    try:
        assert cache.writable_folder().parent == base
    finally:
        os.umask(before)
    assert stat.S_IMODE(cache_folder().stat().st_mode) == 0o755
    numba_folder.cache_clear()
    assert numba_folder() == cache_folder()
    assert not caplog.records


@pytest.mark.parametrize(
    ("of_folder", "of_base", "named"),
    [(0o777, 0o755, "folder"), (0o1777, 0o755, "folder"), (0o755, 0o777, "base"), (0o755, 0o1777, None)],
)
def test_where_everybody_may_write(
    base: Path, of_folder: int, of_base: int, named: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    folder = cache_folder()
    folder.mkdir()
    folder.chmod(of_folder)
    base.chmod(of_base)
    with caplog.at_level(logging.WARNING):
        found = numba_folder()
    if named is None:
        assert found == folder
        return
    assert base not in found.parents
    assert stat.S_IMODE(found.stat().st_mode) == 0o700
    (said,) = [record.getMessage() for record in caplog.records]
    assert f"other users may write to {folder if named == 'folder' else base}: make it yours alone" in said
    assert "RAILGUN_KERNEL_CACHE" in said
    # Its image is not looked at.
    assert image.path().parent == found


def test_another_users(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cache_folder()
    folder.mkdir()
    owner = folder.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    if owner == 0:
        # What belongs to root nobody else may change.
        assert not others_may_write(folder)
        os.chown(folder, 4_321, -1)
    assert others_may_write(folder)
    assert base not in numba_folder().parents


def test_an_image_that_others_may_have_changed(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image.save(image.Header([], []), b"code")
    monkeypatch.setattr(image, "Image", lambda header, code: code)
    assert image.load() is not None
    image.path().chmod(0o666)
    assert image.load() is None
