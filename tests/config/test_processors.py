"""Processors counted as containers and affinity leave them."""

import os
from pathlib import Path

import pytest

from railgun.config import processors as room
from railgun.config.processors import processors


@pytest.fixture(autouse=True)
def eight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of eight, without limits."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(room, "_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(room, "_QUOTA_1", (tmp_path / "quota", tmp_path / "period"))


def test_all_where_nothing_limits_them() -> None:
    assert processors() == 8


@pytest.mark.parametrize(
    ("said", "count"),
    [
        ("200000 100000\n", 2),
        ("150000 100000\n", 2),
        ("50000 100000\n", 1),
        ("9000000 100000\n", 8),
        ("max 100000\n", 8),
        ("nonsense\n", 8),
        ("", 8),
        ("1 0\n", 8),
    ],
)
def test_a_quota(said: str, count: int, tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text(said)
    assert processors() == count


@pytest.mark.parametrize(("quota", "count"), [("300000\n", 3), ("-1\n", 8)])
def test_a_quota_of_the_first_version(quota: str, count: int, tmp_path: Path) -> None:
    (tmp_path / "quota").write_text(quota)
    (tmp_path / "period").write_text("100000\n")
    assert processors() == count


def test_where_there_is_no_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert processors() == 1
