"""Schedules: when requests are due is fixed before any is sent."""

import numpy as np
import pytest

from bench.load.schedule import REQUESTS_MAX, Phase, Schedule


def test_a_constant_rate_is_evenly_spaced() -> None:
    due_ns = Schedule.constant(500, 2).due_ns()
    assert due_ns.tolist() == [2_000_000 * place for place in range(1_000)]


def test_steps_follow_one_another() -> None:
    schedule = Schedule.stepped([10, 40], 0.5)
    assert schedule.phases == (Phase(5, 0.5), Phase(20, 0.5))
    assert (schedule.requests, schedule.seconds) == (25, 1.0)
    due_s = schedule.due_ns() / 1e9
    assert np.allclose(due_s[:5], np.arange(5) * 0.1)
    assert np.allclose(due_s[5:], 0.5 + np.arange(20) * 0.025)
    assert schedule.phase_of().tolist() == [0] * 5 + [1] * 20


def test_a_burst_between_two_phases() -> None:
    schedule = Schedule((Phase(2, 1.0), Phase(3, 0.0), Phase(1, 1.0)))
    assert schedule.due_ns().tolist() == [0, 500_000_000, *[1_000_000_000] * 4]
    assert Schedule.burst(3).due_ns().tolist() == [0, 0, 0]


def test_nothing_to_send() -> None:
    assert len(Schedule(()).due_ns()) == 0


@pytest.mark.parametrize(("requests", "seconds"), [(REQUESTS_MAX + 1, 1.0), (1, 1e6), (-1, 1.0), (1, -1.0)])
def test_a_run_is_bounded(requests: int, seconds: float) -> None:
    with pytest.raises(ValueError, match=r"at most|below 0"):
        Schedule((Phase(requests, seconds),))
