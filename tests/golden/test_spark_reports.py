"""Reports of backfills and validations, and the files that a backfill leaves to go on with. No Java is started."""

import json
from pathlib import Path

from railgun.broker.pid_file import Running, read, write
from railgun.spark.backfill.build import PLAN, TASKS, Backfill
from railgun.spark.backfill.report import BackfillReport
from railgun.spark.backfill.rows import Counts, Refused
from railgun.spark.backfill.source import HistorySource
from railgun.spark.backfill.tasks import COUNTS
from railgun.spark.validation.report import Example, MetricCheck, NotCompared, ReadHistory, Report
from railgun.spark.validation.time_range import TimeRange
from tests.golden.promises import expected, held, held_bytes
from tests.golden.stream import CUT_MS, HISTORY
from tests.golden.test_history_files import EMPTY, MANIFEST, plan

COUNTED = Counts(
    read=1_020,
    after_cut=5,
    nowhere=3,
    refused={"amount: no number": Refused(2, [["t1", "'x' is no number"], ["", "why"]])},
)


def test_the_report_of_a_backfill() -> None:
    beginning = BackfillReport("payments", HISTORY, CUT_MS, COUNTED, [MANIFEST, EMPTY], 1, 2.5)
    deepening = BackfillReport("payments", HISTORY, CUT_MS, Counts(), [MANIFEST], 0, 0.0, [400], ["ts"], True)
    held("backfill_reports.json", {"beginning": beginning.as_json(), "deepening": deepening.as_json()})


def test_what_was_counted() -> None:
    held("backfill_counts.json", COUNTED.as_json())
    assert Counts.from_json(expected("backfill_counts.json")) == COUNTED


def test_work_that_goes_on(tmp_path: Path) -> None:
    """The fingerprint tells whether the work is of the same job: it must not change with a version."""
    source = HistorySource(("lake/a.csv", "lake/b.csv"), "csv", {"sep": ";"})
    job = Backfill(source, {"amount": "CAST(cents AS DOUBLE) / 100"}, tmp_path)
    begun, start_ms = job.begin(plan(tmp_path), "a mark of the files", CUT_MS + 1, has_built=False)
    held_bytes("backfill.json", (tmp_path / PLAN).read_bytes())
    assert job.begin(begun, "a mark of the files", None, has_built=True) == (begun, start_ms)
    held("backfill_work.json", [PLAN, TASKS, COUNTS])


def test_the_report_of_a_validation() -> None:
    wrong = MetricCheck("n", 100, 1, 0, None, None, (Example(7, "t1", "1", "2"),))
    near = MetricCheck("x", 100, 0, 2, 1e-12, None, (Example(8, "t2", "null", "3", "replies.ndjson line 9"),))
    left = MetricCheck("y", not_checked="Spark cannot express it")
    of_run = Report("payments", 100, 2, 4.0, [wrong, near, left])
    history = ReadHistory(HISTORY, ("lake/a.csv",), CUT_MS, 1_000, 990, 10)
    left_out = NotCompared.of_mixed_ids("card", 3)
    of_service = Report(
        "payments",
        100,
        0,
        0.0,
        [near],
        0.25,
        TimeRange(CUT_MS, CUT_MS + 9),
        50,
        48,
        2,
        [left_out],
        history,
    )
    held("validation_reports.json", {"of a run": of_run.as_json(), "of a service": of_service.as_json()})


def test_the_note_of_a_local_broker(tmp_path: Path) -> None:
    running = Running(pid=1, started_ticks=2, started_at=3.5, port=9092)
    write(tmp_path, running)
    (file,) = tmp_path.iterdir()
    held("broker_pid.json", {file.name: json.loads(file.read_text())})
    file.write_text(json.dumps(expected("broker_pid.json")[file.name]))
    assert read(tmp_path) == running
