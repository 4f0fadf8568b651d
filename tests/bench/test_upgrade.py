"""The check of upgrades: it finds nothing between equal releases, and it finds what is wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.load import checked_lines
from bench.upgrade import CASES, Steps

_TREE = Path(__file__).resolve().parents[2]


def _embedded() -> bool:
    steps = Steps(_TREE, rate_per_s=100.0, seconds=0.5)
    CASES["embedded"](steps)
    return steps.failed


def test_one_process_is_stopped_and_killed_and_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert not _embedded()
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in said] == [
        "one process of the revision",
        "stopped and upgraded",
        "stopped and stepped back",
        "killed and upgraded",
        "killed and stepped back",
    ]
    assert all(", 0 unequal, longest wait " in line for line in said)


def _one_reply_changed(expected: dict[str, Any], got: dict[str, Any]) -> list[str]:
    return ["n: expected 7, got 8"] if got["id"] == 20 else []


def _values_changed(expected: dict[str, Any], got: dict[str, Any]) -> list[str]:
    return ["n: expected 7, got 8"]


@pytest.mark.parametrize(
    ("name", "changed"),
    [("differences", _one_reply_changed), ("metric_differences", _values_changed)],
)
def test_what_is_unequal_is_found(
    name: str,
    changed: Callable[[dict[str, Any], dict[str, Any]], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checked_lines, name, changed)
    assert _embedded()
