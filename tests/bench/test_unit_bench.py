"""The unit bench: its workloads reach a steady state and say so; one that does not is refused."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.payments import Payments, blocks
from bench.records import RecordMaker
from bench.torture_summary import summary
from bench.unit_cases import WORKLOADS, Workload
from bench.unit_task import UnsteadyError, WarmTask
from railgun.catalog.definitions import parse_definitions

SMALL = Workload(
    ("{window}",), 5_000, Payments(10**6, cards=100, rate_per_s=1_000.0, rhythm=False), 2_000, batch=100
)


def test_a_measurement_has_its_figures() -> None:
    warm = WarmTask(SMALL)
    try:
        warm.warm_up(40_000)
        figures = warm.measure()
    finally:
        warm.close()
    assert figures["events_per_s"] > 0
    assert 0 < figures["p50_ms"] <= figures["p999_ms"]
    assert warm.answer.size_bytes > 42_000


def test_a_window_that_is_not_full_is_no_steady_state() -> None:
    warm = WarmTask(replace(SMALL, window_ms=3_600_000))
    try:
        warm.warm_up(1_000)
        with pytest.raises(UnsteadyError, match=r"20000 events arrived and 0 crossed the edge 3600000 ms"):
            warm.measure()
    finally:
        warm.close()


def test_records_do_not_depend_on_how_they_are_taken() -> None:
    (stream,) = parse_definitions(SMALL.definitions).streams.values()
    whole, parts = (RecordMaker(blocks(replace(SMALL.payments, events=70_000)), stream) for _ in range(2))
    at_once = [record for block in whole.take(70_000) for record in block.to_list()]
    bit_by_bit = [
        record for size in (1, 65_534, 2, 4_463) for b in parts.take(size) for record in b.to_list()
    ]
    assert at_once == bit_by_bit
    assert len(set(at_once)) == 70_000


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("factor", [1.0, 0.02])
def test_a_workload_can_be_registered_and_fills_its_windows(name: str, factor: float) -> None:
    workload = WORKLOADS[name].scaled(factor)
    metrics = parse_definitions(workload.definitions).metrics
    reaches = [metric.resolved.window.size_ms + metric.resolved.window.delay_ms for metric in metrics]
    assert max(reaches) == workload.window_ms
    assert workload.warm_up > workload.window_events


def test_amounts_in_order() -> None:
    for order, sign in (("rising", 1), ("falling", -1)):
        steps = np.diff(next(blocks(Payments(1_000, amount_order=order)))["amount"].to_numpy())
        assert (steps * sign > 0).all()


def test_the_command_ends_with_one_line_of_json() -> None:
    command = [sys.executable, "-m", "bench.unit", "--only", "batch1", "--runs", "1", "--scale", "0.02"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=True)
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["bench"] == "unit"
    assert {"batch1_p50_ms", "batch1_p999_ms"} <= set(said["figures"])


def test_a_torture_run_is_summed_up(tmp_path: Path) -> None:
    junit = tmp_path / "torture.xml"
    junit.write_text(
        '<testsuites><testsuite><testcase classname="a" name="x" time="2"/><testcase classname="a" name="y" time="3">'
        '<failure message="m"/></testcase><testcase classname="b" name="z" time="1"><skipped/></testcase>'
        "</testsuite></testsuites>",
        encoding="utf-8",
    )
    said = summary(junit)
    assert said[0].split() == ["a", "1", "failed,", "1", "passed", "in", "5", "s"]
    assert said[-2:] == ["failed: a::y", "torture: 1 failed, 1 passed, 1 skipped in 6 s of tests"]
