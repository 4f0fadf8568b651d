"""Validates a run: computes every metric for every event again, and compares it with the recorded replies."""

import time
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from railgun.catalog.model import MetricDefinition, StreamDefinition
from railgun.catalog.names import column_name
from railgun.files.reading import EventFiles
from railgun.spark.errors import OptionError, SparkSideError
from railgun.spark.sessions import divide, in_force, kept, own_session
from railgun.spark.validation.admission import DUPLICATE, LATE, TASK, AdmissionRules, admitted
from railgun.spark.validation.checking import Checked, ValueColumns, held_scale, planned
from railgun.spark.validation.derived_checks import check_run
from railgun.spark.validation.partitioner_check import (
    SURE,
    UNSURE,
    Claim,
    check_partitioner,
)
from railgun.spark.validation.reply_checks import MustBeNull, Unsent, joined
from railgun.spark.validation.reply_file import ReplyFile
from railgun.spark.validation.report import MetricCheck, Report
from railgun.spark.validation.run_source import (
    EVENT_ID,
    EVENT_MS,
    NUMBER,
    RunFiles,
    task_column,
)
from railgun.spark.validation.run_source import reply_column as reply
from railgun.spark.validation.time_range import ALL_TIMES, TimeRange
from railgun.spark.worker_errors import own_errors
from railgun.wording import time_text


class ValidationError(SparkSideError):
    """The validation could not be done. The message is one line."""


def check_files(files: RunFiles) -> None:
    """Check before any work starts that all files can be read.

    Raises DefinitionError, FileError, ReplyFileError, OSError, ValidationError.
    """
    defined = files.defined()
    stream = defined.stream
    if stream.time is None:
        raise ValidationError(
            f"stream {stream.name} has no time field: its events have the time at which railgun run read them, which "
            "is written nowhere, so its results cannot be computed again; give it a time field"
        )
    ReplyFile(Path(files.out), defined.file_columns)
    EventFiles([Path(each) for each in files.events], stream.incoming(1)).close()


def check_sample(sample: float | None) -> None:
    """Raise OptionError if a sample is not a share."""
    if sample is not None and not 0 < sample <= 1:
        raise OptionError(f"a sample of {sample}: a share of the entities above 0, at most 1")


def check_found(found: int, first_ms: int | None, last_ms: int | None, times: TimeRange) -> None:
    """Raise OptionError if nothing is in a range. first_ms, last_ms: the first and the last time of all events."""
    if found or times.is_all:
        return
    there = "there is nothing at all"
    if first_ms is not None and last_ms is not None:
        there = f"what there is goes from {time_text(first_ms)} to {time_text(last_ms)}"
    raise OptionError(f"nothing is {times.as_text()}: {there}")


def validate_run(
    spark: SparkSession, files: RunFiles, sample: float | None = None, times: TimeRange = ALL_TIMES
) -> Report:
    """Compare the output of an off-line run with the results that Spark computes from its input.

    sample: the share of entities (values of a grouping) to compare, in (0, 1].
    times: only replies to events of these times are compared. Admission reads all events all the same.
    Raises OptionError, ValidationError, and what `check_files` raises.
    """
    check_sample(sample)
    check_files(files)
    began = time.perf_counter()
    defined = files.defined()
    stream, metrics = defined.stream, defined.metrics
    session = own_session(spark)
    with (
        own_errors(ValidationError),
        in_force(session),
        kept(files.rows(session, defined)) as run,
    ):
        is_in_range = F.when(F.expr(times.holds(EVENT_MS)), True)
        figures = F.count("*"), F.count(EVENT_MS), F.count(is_in_range), F.min(EVENT_MS), F.max(EVENT_MS)
        rows, events, in_range, first_ms, last_ms = run.agg(*figures).collect()[0]
        check_found(in_range, first_ms, last_ms, times)
        divide(session, rows)
        checks: list[MetricCheck] = []
        for place, partitioner in enumerate(stream.partitioners):
            homely = [metric for metric in metrics if metric.home == partitioner]
            checks += _partitioner(run, stream, place, homely, sample, times)
        types = {each.name: each.resolved.result_type for each in metrics}
        checks += check_run(run, defined.derived, types, times)
    order = {name: place for place, name in enumerate(defined.recorded)}
    checks.sort(key=lambda check: order[check.name])
    seconds = time.perf_counter() - began
    requested = None if times.is_all else in_range
    return Report(stream.name, events, rows - events, seconds, checks, sample, times, in_range=requested)


def _partitioner(
    run: DataFrame,
    stream: StreamDefinition,
    place: int,
    metrics: Sequence[MetricDefinition],
    sample: float | None,
    times: TimeRange,
) -> list[MetricCheck]:
    """Return the checks of one partitioner: lateness, duplicates, and the metrics at home there."""
    values = ValueColumns()
    passes, left = planned([Checked(each, each.name, reply(each.name)) for each in metrics], values)
    name = column_name(stream.partitioners[place])
    late, duplicate = f"late_{name}", f"duplicate_{name}"
    own = values.texts.values()
    fields = dict.fromkeys(column for one in passes for column in one.group if column not in own)
    answers = [reply(late), reply(duplicate), *(each.column for one in passes for each, _ in one.metrics)]
    task = task_column(place)
    requested = [] if times.is_all else [f"{times.holds(EVENT_MS)} AS {SURE}", f"false AS {UNSURE}"]
    sent = run.where(f"{task} IS NOT NULL").selectExpr(
        NUMBER, EVENT_ID, EVENT_MS, f"{task} AS {TASK}", *fields, *values.selected(), *answers, *requested
    )
    claims = [Claim(late, LATE, reply(late)), Claim(duplicate, DUPLICATE, reply(duplicate))]
    tasks = stream.partitions_of(stream.partitioners[place])
    with kept(admitted(sent, AdmissionRules.of(stream), tasks)) as events:
        checks = check_partitioner(events, passes, values.types, claims, sample, has_sure=bool(requested))
    must_be_null = [MustBeNull(each, reply(each)) for each in (late, duplicate)]
    must_be_null += [MustBeNull(each.name, reply(each.name), scale=held_scale(each)) for each in metrics]
    unsent = Unsent(
        run.where(f"{task} IS NULL AND {times.holds(EVENT_MS)}"), stream.partitioners[place]
    ).checks(must_be_null)
    return [joined(check, unsent) for check in checks] + [
        MetricCheck(each.name, not_checked=reason) for each, reason in left
    ]
