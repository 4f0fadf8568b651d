"""The bench of a unit runs: a process reads what was written, and the rate is of what it replied to."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.unit_cases import THROUGHPUT
from bench.unit_topic import unit_per_s
from tests.broker.own_topics import own_prefix


@pytest.mark.timeout(300)
def test_it_is_measured(kafka: str, tmp_path: Path) -> None:
    workload = replace(THROUGHPUT["payments_1x3"], window_ms=1_000, measured=30_000)
    assert unit_per_s(kafka, own_prefix("b"), tmp_path, workload) > 0
