"""Validation of a range of times: its replies alone are compared, with all that their windows reach back to."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from railgun.cli.main import main
from railgun.spark.errors import OptionError
from railgun.spark.validation.report import Report
from railgun.spark.validation.run_source import RunFiles
from railgun.spark.validation.time_range import ALL_TIMES, TimeRange
from railgun.spark.validation.validate_run import validate_run
from railgun.spark.validation.validate_service import Recorded, validate_service
from tests.spark.runs import START_MS, definitions, events, run
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
    """Validate all, and ranges that hold every time once; returns the reports of the ranges."""
    whole = validate_run(spark, files)
    parts = [validate_run(spark, files, times=each) for each in ranges]
    for each in (whole, *parts):
        assert each.mismatches == 0, each.as_text()
    assert sum(each.in_range or 0 for each in parts) == whole.events
    assert compared(parts) == compared([whole])
    return parts


def test_ranges_that_hold_every_time_compare_every_value_once(spark: SparkSession, tmp_path: Path) -> None:
    """Late events among them, and windows that reach behind where a range begins."""
    rows = events(5, 300)
    middle_ms = sorted(row["ts"] for row in rows)[150]
    files = run(tmp_path, definitions("rewrite", (2, 4, 6)), rows)
    parts = check_parts(spark, files, [TimeRange(None, middle_ms), TimeRange(middle_ms)])
    assert 100 < (parts[0].in_range or 0) <= 150


@pytest.mark.torture
@pytest.mark.parametrize("policy", ["rewrite", "discard"])
def test_three_ranges_of_windows_of_every_kind(spark: SparkSession, tmp_path: Path, policy: str) -> None:
    rows = events(len(policy), 600)
    files = run(tmp_path, definitions(policy), rows)
    check_parts(spark, files, thirds(START_MS, max(row["ts"] for row in rows)))


def test_what_is_wrong_is_found_where_it_lies(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = run(tmp_path, CENTS, payments(90))
    table = pq.read_table(files.out)
    values = table.column("total").to_pylist()
    values[41] += 0.01
    values[70] += 0.01
    place = table.schema.get_field_index("total")
    pq.write_table(table.set_column(place, "total", [values]), files.out)
    words = ["validate", files.definitions, *files.events, "--out", files.out]
    at = [str(START_MS + number * 900) for number in range(90)]
    assert main([*words, "--from", at[42], "--until", at[70]]) == 0
    said = capsys.readouterr().out.splitlines()[-1]
    assert said.startswith(
        "90 events, 28 of these from 2023-11-14T22:13:57.800Z until 2023-11-14T22:14:23Z, "
    )
    assert said.endswith("all equal")
    assert main([*words, "--from", at[41], "--until", at[70], "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["mismatches"], report["in_range"]) == (1, 29)
    assert (report["from_ms"], report["until_ms"]) == (int(at[41]), int(at[70]))
    assert main([*words, "--from", at[41]]) == 1
    assert "total: row 70, id e70" in capsys.readouterr().out
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

    def validated(replies: list[dict[str, Any]], of: TimeRange = ALL_TIMES) -> Report:
        return validate_service(
            spark, Recorded({"path": str(folder)}, None, (written(tmp_path, replies),)), times=of
        )

    middle = TimeRange(times[len(times) // 3], times[len(times) * 2 // 3])
    inside = [place for place, each in enumerate(replies) if _holds(middle, each["time"])]
    ids = Counter(each["id"] for each in replies)
    report = validated(replies, middle)
    assert report.mismatches == 0, report.as_text()
    assert (report.in_range, report.unanswered) == (len(inside), 0)
    assert min(check.compared for check in report.checks if not check.name.startswith("seen")) > 0

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
    report = validated(wrong, middle)
    assert {check.name: check.mismatches for check in report.checks if check.mismatches} == {"total": 3}
    assert (report.in_range, report.unanswered) == (len(inside), 1)
    with pytest.raises(OptionError, match=r"nothing is until .*: what there is goes from"):
        validated(replies, TimeRange(None, times[0]))


def _holds(times: TimeRange, time_ms: int) -> bool:
    return (times.from_ms is None or time_ms >= times.from_ms) and (
        times.until_ms is None or time_ms < times.until_ms
    )
