"""Validation: every metric for every event again, with Spark's functions, compared with the recorded replies."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from railgun.catalog.model import MetricDefinition, StreamDefinition
from railgun.catalog.names import column_name
from railgun.files.reading import EventFiles
from railgun.language.ast import Window
from railgun.spark.admission import DUPLICATE, LATE, TASK, AdmissionRules, admitted
from railgun.spark.checking import EXAMPLES, ValueColumns, check_pass, planned
from railgun.spark.environment import check_environment
from railgun.spark.errors import OptionError, SparkSideError
from railgun.spark.reply_file import ReplyFile, recorded_columns
from railgun.spark.report import Example, MetricCheck, Report
from railgun.spark.run_source import EVENT_ID, EVENT_MS, FORMAT, NUMBER, RunFiles, RunSource, task_column
from railgun.spark.run_source import reply_column as reply
from railgun.spark.windows import is_straggler, placed
from railgun.spark.worker_errors import own_errors

SETTINGS = {
    # It moves constants across additions that give null beyond 64 bits, and so past or before the overflow.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ReorderAssociativeOperator",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
    "spark.sql.windowExec.buffer.spill.threshold": "200000",
}
"""What a session of validation is set to, before anything else: the meaning of SQL depends on it."""


class ValidationError(SparkSideError):
    """The validation could not be done; the message is one line."""


def local_session(cores: str = "*", memory: str = "1g") -> SparkSession:
    """A Spark on this machine; under spark-submit the one that was asked for there.

    Raises SetupError where Java or Spark will not do.
    """
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return SparkSession.builder.appName("railgun").getOrCreate()
    check_environment()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    return (
        SparkSession.builder.appName("railgun")
        .master(f"local[{cores}]")
        .config("spark.driver.memory", memory)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )


def check_files(files: RunFiles) -> None:
    """Look at all files before any work starts. Raises DefinitionError, FileError, ReplyFileError, OSError."""
    stream, metrics = files.defined()
    ReplyFile(Path(files.out), recorded_columns(stream, metrics))
    EventFiles([Path(each) for each in files.events], stream.schema(1)).close()


def validate_run(spark: SparkSession, files: RunFiles, sample: float | None = None) -> Report:
    """Compare the output of an off-line run with what Spark makes of its input.

    sample: the share of entities (values of a grouping) to look at, in (0, 1]; admission takes all events all the same.
    Raises OptionError, ValidationError, and what `check_files` raises.
    """
    if sample is not None and not 0 < sample <= 1:
        raise OptionError(f"a sample of {sample}: a share of the entities above 0, at most 1")
    check_files(files)
    began = time.perf_counter()
    stream, metrics = files.defined()
    session = spark.newSession()
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    session.dataSource.register(RunSource)
    with own_errors(ValidationError):
        loaded = session.read.format(FORMAT).options(**files.options()).load()
        with _kept(loaded) as run:
            counted = run.agg(F.count("*"), F.count(EVENT_MS)).collect()[0]
            _divide(session, spark, counted[0])
            checks: list[MetricCheck] = []
            for place, partitioner in enumerate(stream.partitioners):
                homely = [metric for metric in metrics if metric.home == partitioner]
                checks += _partitioner(run, stream, place, homely, sample)
    order = {name: place for place, name in enumerate(recorded_columns(stream, metrics))}
    checks.sort(key=lambda check: order[check.name])
    seconds = time.perf_counter() - began
    return Report(stream.name, counted[1], counted[0] - counted[1], seconds, checks, sample)


@contextmanager
def _kept(frame: DataFrame) -> Iterator[DataFrame]:
    """A frame on disk for as long as the block lasts."""
    kept = frame.persist(StorageLevel.DISK_ONLY)
    try:
        yield kept
    except Exception:
        kept.unpersist()
        raise
    # Whoever is interrupted may stand in the middle of a call to Spark: another one would get that call's answer.
    # Spark ends with the process.
    kept.unpersist()


def _divide(session: SparkSession, spark: SparkSession, events: int) -> None:
    """As many shuffle partitions as keep each in bounds."""
    partitions = max(spark.sparkContext.defaultParallelism, events // 200_000)
    session.conf.set("spark.sql.shuffle.partitions", str(partitions))


def _partitioner(
    run: DataFrame,
    stream: StreamDefinition,
    place: int,
    metrics: Sequence[MetricDefinition],
    sample: float | None,
) -> list[MetricCheck]:
    """All that one partitioner's tasks answer: lateness, duplicates, and the metrics at home there."""
    values = ValueColumns()
    passes, left = planned(metrics, values)
    name = column_name(stream.partitioners[place])
    late, duplicate = f"late_{name}", f"duplicate_{name}"
    fields = dict.fromkeys(column for one in passes for column in one.group)
    answers = [
        reply(each)
        for each in (late, duplicate, *(metric.name for one in passes for metric, _ in one.metrics))
    ]
    sent = run.where(f"{task_column(place)} IS NOT NULL").selectExpr(
        NUMBER, EVENT_ID, EVENT_MS, f"{task_column(place)} AS {TASK}", *fields, *values.selected(), *answers
    )
    with _kept(admitted(sent, AdmissionRules.of(stream))) as events:
        windows = list(dict.fromkeys(one.window for one in passes if not one.is_distinct))
        said = [
            _said(events, late, f"{LATE} <=> {reply(late)}", LATE),
            _said(events, duplicate, f"{DUPLICATE} <=> {reply(duplicate)}", DUPLICATE),
        ]
        late_in = _with_stragglers(events, windows)
        for one in passes:
            said += check_pass(
                events, one, values.types, stragglers=late_in.get(one.window, False), sample=sample
            )
    unsent = run.where(f"{task_column(place)} IS NULL")
    nulls = _must_be_null(unsent, [late, duplicate, *(metric.name for metric in metrics)])
    return [_joined(check, nulls) for check in said] + [
        MetricCheck(metric.name, not_checked=reason) for metric, reason in left
    ]


def _with_stragglers(events: DataFrame, windows: Sequence[Window]) -> dict[Window, bool]:
    """By window, whether any event came after the head had left its block."""
    found: DataFrame | None = None
    for place, window in enumerate(windows):
        one = placed(events, window).where(is_straggler(window)).limit(1).select(F.lit(place).alias("place"))
        found = one if found is None else found.union(one)
    seen = set() if found is None else {row["place"] for row in found.collect()}
    return {window: place in seen for place, window in enumerate(windows)}


def _said(events: DataFrame, name: str, is_right: str, own: str) -> MetricCheck:
    """Compare what the replies say of lateness or duplicates."""
    wrong = events.where(f"NOT ({is_right})")
    compared, mismatches = events.agg(
        F.count("*"), F.count(F.when(F.expr(f"NOT ({is_right})"), True))
    ).collect()[0]
    examples = [
        Example(row[NUMBER], row[EVENT_ID], _word(row[own]), _word(row[reply(name)]))
        for row in (wrong.orderBy(NUMBER).limit(EXAMPLES).collect() if mismatches else ())
    ]
    return MetricCheck(name, compared, mismatches, examples=tuple(examples))


def _must_be_null(unsent: DataFrame, names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """By column, rows that were not sent to the partitioner, and how many of them say something all the same."""
    figures = [F.count("*").alias("rows"), *(F.count(reply(name)).alias(name) for name in names)]
    row = unsent.agg(*figures).collect()[0]
    return {name: (row["rows"], row[name]) for name in names}


def _joined(check: MetricCheck, nulls: dict[str, tuple[int, int]]) -> MetricCheck:
    rows, said = nulls[check.name]
    return MetricCheck(
        check.name,
        check.compared + rows,
        check.mismatches + said,
        check.beyond,
        check.difference,
        examples=check.examples,
    )


def _word(value: object) -> str:
    return "null" if value is None else str(value).lower()
