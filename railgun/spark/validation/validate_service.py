"""Validates a service: computes results again from a stream's logs, and compares them with recorded replies."""

import time
from collections.abc import Iterable
from contextlib import ExitStack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from railgun.catalog.names import column_name
from railgun.spark.sessions import divide, in_force, kept, kept_alone, own_session
from railgun.spark.validation.admission import TASK
from railgun.spark.validation.derived_checks import answered_columns, check_derived
from railgun.spark.validation.lifetimes import ControlHistory, follow_controls
from railgun.spark.validation.recorded import Recorded, check_recorded
from railgun.spark.validation.reply_checks import check_times, unknown_metrics
from railgun.spark.validation.reply_records import IN_NO_LOG, beside_records, is_mixed, sent_records
from railgun.spark.validation.reply_source import FORMAT as REPLIES
from railgun.spark.validation.reply_source import REPLY_ID, REPLY_MS, REPLY_NUMBER, ReplySource, ResultColumn
from railgun.spark.validation.report import NotCompared, Report
from railgun.spark.validation.run_source import NUMBER
from railgun.spark.validation.service_partitioner import AT_ID, OF_ID, ServicePartitioner
from railgun.spark.validation.stream_past import stream_past
from railgun.spark.validation.task_log_source import CONTROL, TaskLogSource
from railgun.spark.validation.task_log_source import FORMAT as TASK_LOG
from railgun.spark.validation.time_range import ALL_TIMES, TimeRange
from railgun.spark.validation.validate_run import ValidationError, check_found, check_sample
from railgun.spark.validation.worlds import Controls
from railgun.spark.worker_errors import own_errors


def validate_service(
    spark: SparkSession, recorded: Recorded, sample: float | None = None, times: TimeRange = ALL_TIMES
) -> Report:
    """Compare the recorded replies of a stream with the results that Spark computes from its logs.

    sample, times: as for `validate_run`.  Raises OptionError, ValidationError, and what `check_recorded` raises.
    """
    check_sample(sample)
    entry = check_recorded(recorded)
    stream = entry.stream
    began = time.perf_counter()
    session = own_session(spark)
    session.dataSource.register(TaskLogSource)
    session.dataSource.register(ReplySource)
    with own_errors(ValidationError), in_force(session), ExitStack() as stack:
        logs: dict[str, DataFrame] = {}
        for partitioner in stream.partitioners:
            reader = session.read.format(TASK_LOG).options(**recorded.options(stream.name, partitioner))
            logs[partitioner] = stack.enter_context(kept(reader.load()))
        by_partitioner = {partitioner: _controls(log, partitioner) for partitioner, log in logs.items()}
        data = recorded.log.get("path")
        past = stack.enter_context(stream_past(session, recorded.history, stream, by_partitioner, data))
        controls = {name: each for name, (each, _) in by_partitioner.items()}
        columns = _columns(controls.values())
        place = recorded.replies(stream, [*columns, *answered_columns(entry)])
        loaded = session.read.format(REPLIES).options(**place.options()).load()
        records = stack.enter_context(kept_alone(sent_records(logs, stream, times)))
        replies = stack.enter_context(kept(_numbered(beside_records(loaded, records, stream))))
        is_in_range = times.holds(REPLY_MS)
        mixed = [F.count_if(F.expr(f"{is_mixed(each)} AND {is_in_range}")) for each in range(len(logs))]
        count, in_range, first_ms, last_ms, *not_compared = replies.agg(
            F.count("*"), F.count_if(F.expr(is_in_range)), F.min(REPLY_MS), F.max(REPLY_MS), *mixed
        ).collect()[0]
        check_found(in_range, first_ms, last_ms, times)
        divide(session, count if past is None else count + past.read.events)
        checks = [
            unknown_metrics(replies.where(is_in_range), place.of_number),
            check_times(replies, place.of_number),
        ]
        unanswered = 0
        for partitioner, log in logs.items():
            one = ServicePartitioner(entry, partitioner, controls, columns, log, replies, past, times, place)
            checks += one.checks(sample)
            unanswered += one.unanswered
        checks += check_derived(replies, logs, entry, controls, times, OF_ID, place)
    return Report(
        stream.name,
        count,
        0,
        time.perf_counter() - began,
        checks,
        sample,
        times,
        in_range=None if times.is_all else in_range,
        replies=count,
        unanswered=unanswered,
        not_compared=_not_compared(logs, not_compared),
        history=None if past is None else past.read,
    )


def _controls(log: DataFrame, partitioner: str) -> tuple[ControlHistory, Controls]:
    """Return the control records of a partitioner's log: what follows from them, and the records."""
    rows = log.where(f"{CONTROL} IS NOT NULL").select(TASK, NUMBER, CONTROL).collect()
    controls = [(row[0], row[1], row[2]) for row in rows]
    return follow_controls(controls, partitioner), controls


def _not_compared(partitioners: Iterable[str], mixed: Iterable[int]) -> list[NotCompared]:
    """mixed: by partitioner, how many replies are to ids of several events."""
    return [
        NotCompared.of_mixed_ids(column_name(name), count)
        for name, count in zip(partitioners, mixed)
        if count
    ]


def _columns(all_controls_seen: Iterable[ControlHistory]) -> list[ResultColumn]:
    """Return the columns of all metrics that the stream has had."""
    lives = {added: life for each in all_controls_seen for added, life in each.lives.items()}
    return [
        ResultColumn.of(f"r_{added}", life.metric.name, life.metric.resolved.result_type)
        for added, life in sorted(lives.items())
    ]


def _numbered(replies: DataFrame) -> DataFrame:
    """Replies with the number of replies to their id, and their number among these."""
    alike = Over.partitionBy(REPLY_ID, IN_NO_LOG)
    return replies.withColumns(
        {
            OF_ID: F.count("*").over(alike),
            AT_ID: F.row_number().over(alike.orderBy(REPLY_NUMBER)),
        }
    )
