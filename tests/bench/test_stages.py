"""The bench of stages: what it times exists, and its stages are all of a thread's time."""

import pytest

from bench.stages.least import least_ns
from bench.stages.measuring import PARTS, measured
from bench.stages.stopwatch import METHODS, STAGES, Stopwatch


def test_each_method_that_is_timed_exists() -> None:
    for owner, name, _ in METHODS:
        assert callable(getattr(owner, name, None)), f"{owner.__name__} has no {name}"
    assert set(least_ns(100.0, 50.0, 80.0, 1_000)) < set(STAGES)


def test_methods_are_as_before_when_they_were_timed() -> None:
    before = [getattr(owner, name) for owner, name, _ in METHODS]
    with Stopwatch().watching():
        assert not any(getattr(owner, name) in before for owner, name, _ in METHODS)
    assert [getattr(owner, name) for owner, name, _ in METHODS] == before


@pytest.mark.parametrize("name", list(PARTS))
def test_stages_are_all_of_the_time_of_their_thread(name: str) -> None:
    figures = measured(PARTS[name], 0.001, 1)
    # The stages are timed one by one, their thread as a whole, and the process as a whole: three clocks.
    stages = sum(figures[f"{stage}_ns"] for stage in STAGES)
    assert 0 < figures["outside_stages_ns"] < 0.5 * stages
    assert figures["own_thread_ns"] < figures["whole_ns"]
    # Work in the background comes when it is due, not for each event.
    rare = {"background_work", "seal_chunks"}
    assert all(figures[f"{stage}_ns"] > 0 for stage in STAGES if stage not in rare)
    assert figures["read_json_bound_ns"] > 0
