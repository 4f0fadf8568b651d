"""The process that measures a case of figure 9, as functions."""

from dataclasses import replace

from bench.paper.warm_child import singles_ms
from bench.paper.windows_work import DEFAULT_CACHE_BYTES, edges_case
from bench.unit_task import WarmTask


def test_events_that_no_time_is_left_for_leave_no_hole_in_the_windows() -> None:
    case = replace(edges_case(20, DEFAULT_CACHE_BYTES, 0.01), singles_s=0.001)
    warm = WarmTask(case.workload)
    try:
        before = warm.task.position
        assert 1 <= len(singles_ms(warm, case)) < case.singles
        assert warm.task.position == before + case.singles
    finally:
        warm.close()
