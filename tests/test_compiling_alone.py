"""Processes that find nothing compiled do not all compile."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from railgun.kernels import compiling_alone

_WAITING = """
from railgun.kernels import compiling_alone
print("asks", flush=True)
told = set()
with compiling_alone(told.add):
    print("has it, after", *told, flush=True)
"""


def test_whoever_compiles_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAILGUN_KERNEL_CACHE", str(tmp_path))
    monkeypatch.setattr("railgun.kernels.cache_folder", lambda: tmp_path / "of these sources")
    with compiling_alone():
        other = subprocess.Popen([sys.executable, "-c", _WAITING], stdout=subprocess.PIPE, text=True)
        assert other.stdout is not None
        assert other.stdout.readline() == "asks\n"
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(0.5)
    assert other.stdout.read() == f"has it, after {os.getpid()}\n"
    other.stdout.close()
    assert other.wait(30) == 0


def test_where_nothing_can_be_kept_nobody_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("railgun.kernels.cache_folder", lambda: tmp_path / "file" / "kernels" / "of these")
    with compiling_alone(), compiling_alone():
        pass
