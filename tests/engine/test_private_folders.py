"""Data folders are for their owner alone; those that were there before are warned about."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from railgun.engine.engine import Engine
from railgun.history.durable_files import write_whole
from railgun.node.folder import held_folder
from railgun.private_folder import exposure, make_private


def mode_of(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """By which everybody may read what is new."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_a_folder_of_an_engine(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = tmp_path / "above" / "data"
    with caplog.at_level(logging.WARNING), Engine(data):
        pass
    assert [mode_of(each) for each in (data, data / "log", data / "streams")] == [0o700] * 3
    assert mode_of(data.parent) == 0o755
    assert "chmod" not in caplog.text


@pytest.mark.parametrize(
    ("mode", "is_warned"), [(0o700, False), (0o710, False), (0o750, True), (0o711, True), (0o755, True)]
)
def test_a_folder_that_was_there_is_warned_about(
    tmp_path: Path, mode: int, is_warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    with Engine(data):
        pass
    data.chmod(mode)
    with caplog.at_level(logging.WARNING), Engine(data):
        pass
    found = [record.getMessage() for record in caplog.records if "chmod" in record.getMessage()]
    wanted = (
        f"{data}: other users of this machine may enter it (mode {mode:03o}), and nothing in it is encrypted: "
        f"chmod 700 {data}"
    )
    assert found == ([wanted] if is_warned else [])
    assert mode_of(data) == mode


def test_a_folder_of_a_node(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name, mode in (("new", None), ("old", 0o755)):
        data = tmp_path / name
        if mode is not None:
            data.mkdir(mode=mode)
        caplog.clear()
        with caplog.at_level(logging.WARNING), held_folder(data):
            assert mode_of(data / "tasks") == 0o700
            assert mode_of(data) == (mode or 0o700)
        assert (f"chmod 700 {data}" in caplog.text) == (mode is not None)


def test_built_history_follows_the_umask(tmp_path: Path) -> None:
    """Spark's jobs may run as another user, of the same group."""
    data = tmp_path / "data"
    make_private(data)
    data.chmod(0o710)
    assert exposure(data) is None
    write_whole(data / "backfill" / "payments" / "plan.json", "{}")
    for each in (data / "backfill", data / "backfill" / "payments"):
        assert mode_of(each) == 0o755
    assert mode_of(data / "backfill" / "payments" / "plan.json") == 0o644
