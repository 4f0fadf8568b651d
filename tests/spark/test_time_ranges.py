"""Validation of a range of times: its replies alone are compared, with all that their windows reach back to."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from railgun.catalog.names import column_name
from railgun.cli.main import main
from railgun.spark.errors import OptionError
from railgun.spark.validation.recorded import Recorded
from railgun.spark.validation.report import Report
from railgun.spark.validation.run_source import RunFiles
from railgun.spark.validation.time_range import TimeRange
from railgun.spark.validation.validate_run import validate_run
from railgun.spark.validation.validate_service import validate_service
from tests.spark.runs import START_MS, add_to_replies, definitions, events, run
from tests.spark.test_service_validation import lived, written
from tests.spark.test_validation import CENTS, payments

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
__all__ = ["lived"]


def thirds(first_ms: int, last_ms: int) -> tuple[TimeRange, TimeRange, TimeRange]:
    """Three ranges that hold every time once."""
    one, two = first_ms + (last_ms - first_ms) // 3, first_ms + (last_ms - first_ms) * 2 // 3
    return TimeRange(None, one), TimeRange(one, two), TimeRange(two)


def compared(reports: Sequence[Report]) -> Counter[str]:
    """By what was compared, how many values of all of them."""
    return Counter({check.name: 0 for each in reports for check in each.checks}) + Counter(
        check.name for each in reports for check in each.checks for _ in range(check.compared)
    )


def check_parts(spark: SparkSession, files: RunFiles, ranges: Sequence[TimeRange]) -> list[Report]:
    """Validate ranges that hold every time once: every value of each reply is compared once."""
    parts = [validate_run(spark, files, times=each) for each in ranges]
    for each in parts:
        assert each.mismatches == 0, each.as_text()
    replies, defined = pq.read_table(files.out).num_rows, files.defined()
    stream, metrics = defined.stream, defined.metrics
    assert sum(each.in_range or 0 for each in parts) == replies
    names = [metric.name for metric in metrics]
    names += [
        f"{what}_{by}" for what in ("late", "duplicate") for by in map(column_name, stream.partitioners)
    ]
    assert compared(parts) == dict.fromkeys(names, replies)
    return parts


def test_ranges_that_hold_every_time_compare_every_value_once(spark: SparkSession, tmp_path: Path) -> None:
    """Late events among them, and windows that reach behind where a range begins."""
    rows = events(5, 300)
    middle_ms = sorted(row["ts"] for row in rows)[150]
    files = run(tmp_path, definitions("rewrite", (2, 4, 6), few=True), rows)
    parts = check_parts(spark, files, [TimeRange(None, middle_ms), TimeRange(middle_ms)])
    assert 100 < (parts[0].in_range or 0) <= 150


@pytest.mark.torture
@pytest.mark.usefixtures("as_in_production")
@pytest.mark.parametrize("policy", ["rewrite", "discard"])
def test_three_ranges_of_windows_of_every_kind(spark: SparkSession, tmp_path: Path, policy: str) -> None:
    rows = events(len(policy), 600)
    files = run(tmp_path, definitions(policy), rows)
    check_parts(spark, files, thirds(START_MS, max(row["ts"] for row in rows)))
    whole = validate_run(spark, files)
    assert whole.mismatches == 0, whole.as_text()


def test_what_is_wrong_is_found_where_it_lies(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Errors in the first and in the last reply of a range, and in those beside it."""
    files = run(tmp_path, CENTS, payments(90))
    add_to_replies(files, "total", dict.fromkeys((40, 41, 69, 70), 0.01))
    words = ["validate", files.definitions, *files.events, "--out", files.out]
    at = [str(START_MS + number * 900) for number in range(90)]
    assert main([*words, "--from", at[41], "--until", at[70]]) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    assert [line.split(":")[:2] for line in lines if "recorded" in line] == [
        ["total", f" row {row}, id e{row}"] for row in (41, 69)
    ]
    assert last.startswith(
        "90 events, 29 of these from 2023-11-14T22:13:56.900Z until 2023-11-14T22:14:23Z, "
    )
    assert last.endswith(" equal, 2 WRONG")
    assert main([*words, "--until", at[0]]) == 2
    assert "nothing is until 2023-11-14T22:13:20Z: what there is goes from" in capsys.readouterr().err
    assert main([*words, "--from", "2024-01-01T00:00:00Z", "--until", "2024-01-01T00:00:00Z"]) == 2
    assert "the end is not after the beginning" in capsys.readouterr().err


def test_a_range_of_a_service(
    spark: SparkSession, lived: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    """With metrics that came and went, lateness that changed, and ids that came again."""
    folder, replies = lived
    times = sorted(each["time"] for each in replies)
    middle = TimeRange(times[len(times) // 3], times[len(times) * 2 // 3])
    inside = [place for place, each in enumerate(replies) if _holds(middle, each["time"])]
    ids = Counter(each["id"] for each in replies)
    wrong = json.loads(json.dumps(replies))
    alone = [
        place for place in inside if ids[replies[place]["id"]] == 1 and replies[place]["metrics"]["total"]
    ]
    again = next(
        place for place in inside if "duplicate" in replies[place] and replies[place]["metrics"]["total"]
    )
    outside = next(
        place
        for place, each in enumerate(replies)
        if place not in inside and ids[each["id"]] == 1 and each["metrics"]["total"]
    )
    for place in (alone[3], again, outside):
        wrong[place]["metrics"]["total"] += 0.01
    lost = {alone[-1], next(place for place in range(outside + 1, len(replies)) if place not in inside)}
    wrong = [each for place, each in enumerate(wrong) if place not in lost]
    wrong.append({"id": "nobody", "time": times[len(times) // 2], "metrics": {"total": 1.5}})
    wrong.append({"id": "nobody else", "time": 1, "metrics": {"total": 1.5}})
    recorded = Recorded({"path": str(folder)}, None, (written(tmp_path, wrong),))
    report = validate_service(spark, recorded, times=middle)
    found = {check.name: check for check in report.checks if check.mismatches}
    assert [(name, check.mismatches) for name, check in found.items()] == [("total", 3)], report.as_text()
    assert {each.id for each in found["total"].examples} == {
        "nobody", *(replies[place]["id"] for place in (alone[3], again)),
    }  # fmt: skip
    assert (report.in_range, report.unanswered) == (len(inside), 1)
    assert min(check.compared for check in report.checks if not check.name.startswith("seen")) > 0
    with pytest.raises(OptionError, match=r"nothing is until .*: what there is goes from"):
        validate_service(spark, recorded, times=TimeRange(None, 1))


def _holds(times: TimeRange, time_ms: int) -> bool:
    return (times.from_ms is None or time_ms >= times.from_ms) and (
        times.until_ms is None or time_ms < times.until_ms
    )
