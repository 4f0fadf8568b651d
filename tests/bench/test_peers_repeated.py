"""Whether a run of the bench of peers is repeated: the order of systems, and their ratios."""

import sys
from pathlib import Path

import pytest

from bench.kept_results import Results
from bench.peers.repeated import differences, main

MACHINE = {"processor": "A", "cores": 2, "memory_gib": 16, "system": "L", "python": "3", "java": ""}


def run(rates: dict[str, float], ratio: float = 2.0) -> Results:
    """A run under one kind of work. Each rate has a spread of a tenth."""
    found = Results("peers", {"runs": 3, "scale": 1.0}, MACHINE)
    for name, rate in rates.items():
        figures = {
            "events_per_s": rate,
            "events_per_s_least": 0.9 * rate,
            "events_per_s_greatest": 1.1 * rate,
        }
        found.note(f"{name}.one_10", "", figures | {"railgun_engine_over": ratio})
    return found


def test_the_same_order_and_like_ratios_are_the_same() -> None:
    before = run({"dict_deque": 100.0, "flink_heap": 90.0, "flink_rocksdb": 10.0})
    # Two whose spreads overlap are in no order.
    after = run({"dict_deque": 200.0, "flink_heap": 210.0, "flink_rocksdb": 30.0}, 2.9)
    assert list(differences(before, after)) == []


def test_another_order_and_other_ratios_are_named() -> None:
    before, after = (
        run({"dict_deque": 100.0, "flink_heap": 50.0}),
        run({"dict_deque": 50.0, "flink_heap": 100.0}),
    )
    assert list(differences(before, after)) == [
        "one_10: dict_deque was faster than flink_heap, and is slower"
    ]
    assert list(differences(run({"dict_deque": 100.0}, 2.0), run({"dict_deque": 100.0}, 3.1))) == [
        "dict_deque.one_10: railgun_engine was 2 times as fast, and is 3.1 times as fast"
    ]


def test_the_command_says_what_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = []
    for place, found in enumerate((run({"dict_deque": 1.0}, 2.0), run({"dict_deque": 1.0}, 4.0), run({}))):
        found.write(tmp_path / str(place))
        paths.append(str(tmp_path / str(place) / found.name))
    before, other, nothing = paths

    def code(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["repeated", *words])
        return main()

    assert code(before, before) == 0
    assert "measurements compared: 1; differences: 0" in capsys.readouterr().out
    assert code(before, other) == 1
    assert "is 4 times as fast" in capsys.readouterr().out
    assert code(before, nothing) == 2
    assert "no measurement of a peer in common" in capsys.readouterr().err
    assert code(before, str(tmp_path / "none")) == 2
