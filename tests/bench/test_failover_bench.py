"""The bench of failovers runs: each figure comes from a real cluster, and what events did not cover is refused."""

import pytest

from bench import failover
from bench.children import ChildFailedError
from bench.report import Report
from bench.unit_cases import THROUGHPUT
from railgun.catalog.definitions import parse_definitions

_S = 1_000_000_000


def test_what_takes_longer_than_events_come_is_not_measured() -> None:
    start_ns = 7 * _S
    assert failover._seconds_of(start_ns, start_ns + 5 * _S, start_ns + 10 * _S - 1, 10) == (5, 9)
    with pytest.raises(ChildFailedError, match="it took 6 s, and events came for 5 s of them"):
        failover._seconds_of(start_ns, start_ns + 5 * _S, start_ns + 10 * _S, 10)


def test_a_stream_of_several_tasks_can_be_defined() -> None:
    (stream,) = parse_definitions(failover.definitions_with(THROUGHPUT["payments_1x3"], 4)).streams.values()
    assert stream.partitions == 4


@pytest.mark.torture
@pytest.mark.parametrize(
    ("case", "keys"),
    [
        (
            "killed",
            {
                f"{what}_killed_{when}_s"
                for what in ("unit", "node")
                for when in ("under_load", "after_quiet")
            },
        ),
        ("graceful", {f"{what}_worst_ms" for what in ("rolling_restart", "drain")}),
        ("silent", {"silent_over_answering_cpu"}),
    ],
)
def test_each_case_is_measured(case: str, keys: set[str]) -> None:
    report = Report(1, 0.02)
    failover.CASES[case](report)
    assert keys <= set(report.figures)
    assert min(report.figures[key] for key in keys) > 0
