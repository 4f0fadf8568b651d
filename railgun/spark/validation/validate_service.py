"""Validation of a service: its streams' logs computed again, and compared with the replies that it recorded."""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from railgun.catalog.catalog import StreamEntry
from railgun.catalog.names import column_name
from railgun.spark.errors import OptionError, ReplyFileError
from railgun.spark.sessions import divide, in_force, kept, kept_alone, own_session
from railgun.spark.tables.opening import registered
from railgun.spark.tables.options import read_options
from railgun.spark.validation.admission import (
    DUPLICATE,
    LATE,
    REDELIVERED,
    TASK,
    AdmissionRules,
    Lateness,
    admitted,
)
from railgun.spark.validation.checking import ValueColumns, planned
from railgun.spark.validation.derived_checks import answered_columns, check_derived, lives_of
from railgun.spark.validation.history_events import HistoryInput
from railgun.spark.validation.life_rules import LifeRules
from railgun.spark.validation.lifetimes import ControlHistory, follow_controls
from railgun.spark.validation.partitioner_check import (
    SURE,
    UNSURE,
    Claim,
    Uncertain,
    check_partitioner,
)
from railgun.spark.validation.redelivery import INPUT_COLUMNS
from railgun.spark.validation.reply_checks import Spoken, Unsent, check_times, joined, unknown_metrics
from railgun.spark.validation.reply_records import (
    IN_NO_LOG,
    OF_MS,
    OWN_MS,
    beside_records,
    is_mixed,
    more_than_replies,
    sent_records,
    sent_to,
)
from railgun.spark.validation.reply_source import (
    ABSENT,
    DUPLICATE_AT,
    LATE_AT,
    PARTIAL,
    REPLY_ID,
    REPLY_MS,
    REPLY_NUMBER,
    UNFIT,
    WARMING,
    Answered,
    ReplyPlace,
    ReplySource,
)
from railgun.spark.validation.reply_source import FORMAT as REPLIES
from railgun.spark.validation.report import MetricCheck, NotCompared, Report
from railgun.spark.validation.run_source import EVENT_ID, EVENT_MS, NUMBER, field_column
from railgun.spark.validation.stream_past import StreamPast, check_named, stream_past
from railgun.spark.validation.task_log_source import CONTROL, RECORD, TaskLogSource, place_of_number
from railgun.spark.validation.task_log_source import FORMAT as TASK_LOG
from railgun.spark.validation.time_range import ALL_TIMES, TimeRange
from railgun.spark.validation.translate import FIELD_PREFIX, text_literal
from railgun.spark.validation.validate_run import ValidationError, check_found, check_sample
from railgun.spark.validation.worlds import (
    FROM_INPUT,
    IS_HERE,
    SENT_MS,
    WORLD,
    Behind,
    Controls,
    both,
    floors,
)
from railgun.spark.worker_errors import own_errors

_OF_ID, _AT_ID, _EVENTS_OF_ID = "replies_of_id", "reply_of_id", "events_of_id"
_IS_ASKED = "is_asked"
_BESIDE = (
    *(REPLY_NUMBER, REPLY_ID, OF_MS, _OF_ID, _AT_ID),
    *(LATE_AT, DUPLICATE_AT, ABSENT, UNFIT, WARMING, PARTIAL),
)
"""Of replies what events are compared with, beside results."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Where a service's logs and replies are.

    log: options of the data source: a folder or a broker.  stream: its name, None where there is only one.
    files: of replies, one on each line; none: the stream's output topic.  history: what its backfill read, where it had
    one.
    """

    log: Mapping[str, str]
    stream: str | None = None
    files: tuple[str, ...] = ()
    history: HistoryInput | None = None

    def registered(self) -> StreamEntry:
        """The stream. Raises OptionError, PlaceError."""
        named = {} if self.stream is None else {"stream": self.stream}
        return registered(read_options({**self.log, **named}))

    def options(self, stream: str, partitioner: str) -> dict[str, str]:
        """Of the data source, for the logs of a partitioner."""
        made = {**self.log, "stream": stream, "partitioner": column_name(partitioner)}
        return made if self.history is None else {**made, "columns": RECORD}

    def replies(self, stream: str, columns: Sequence[Answered] = ()) -> ReplyPlace:
        """A stream's. Raises OptionError, ReplyFileError where there can be none."""
        options = read_options(self.log)
        if options.broker is None and not self.files:
            raise OptionError(
                "replies of an embedded engine are in no topic: name the files that they were written to, one JSON "
                "reply on each line, as railgun score prints them"
            )
        for path in self.files:
            if not Path(path).is_file():
                raise ReplyFileError(
                    f"{path}: there is no such file; name files of one JSON reply on each line"
                )
        broker = None if self.files else options.broker
        return ReplyPlace(self.files, broker, options.topic_prefix, options.kafka, stream, tuple(columns))


def check_recorded(recorded: Recorded) -> StreamEntry:
    """Look at all logs and replies before any work starts; returns the stream.

    Raises OptionError, PlaceError, ReplyFileError.
    """
    entry = recorded.registered()
    stream = entry.stream
    replies = recorded.replies(stream.name)
    if replies.broker is not None:
        replies.open().close()
    for partitioner in stream.partitioners:
        TaskLogSource(recorded.options(stream.name, partitioner)).log_reader().partitions()
    check_named(stream.name, None if entry.history is None else entry.history.history, recorded.history)
    return entry


def validate_service(
    spark: SparkSession, recorded: Recorded, sample: float | None = None, times: TimeRange = ALL_TIMES
) -> Report:
    """Compare the recorded replies of a stream with what Spark makes of its logs.

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
        by_partitioner: dict[str, tuple[ControlHistory, Controls]] = {}
        for partitioner in stream.partitioners:
            loaded = (
                session.read.format(TASK_LOG).options(**recorded.options(stream.name, partitioner)).load()
            )
            log = logs[partitioner] = stack.enter_context(kept(loaded))
            rows = log.where(f"{CONTROL} IS NOT NULL").select(TASK, NUMBER, CONTROL).collect()
            controls = [(row[0], row[1], row[2]) for row in rows]
            by_partitioner[partitioner] = follow_controls(controls, partitioner), controls
        data = recorded.log.get("path")
        past = stack.enter_context(stream_past(session, recorded.history, stream, by_partitioner, data))
        columns = _columns([each for each, _ in by_partitioner.values()])
        place = recorded.replies(stream.name, [*columns, *answered_columns(entry)])
        loaded = session.read.format(REPLIES).options(**place.options()).load()
        records = stack.enter_context(kept_alone(sent_records(logs, times)))
        replies = stack.enter_context(kept(_numbered(beside_records(loaded, records, stream))))
        is_asked = times.holds(REPLY_MS)
        mixed = [F.count_if(F.expr(f"{is_mixed(each)} AND {is_asked}")) for each in range(len(logs))]
        count, in_range, first_ms, last_ms, *not_compared = replies.agg(
            F.count("*"), F.count_if(F.expr(is_asked)), F.min(REPLY_MS), F.max(REPLY_MS), *mixed
        ).collect()[0]
        check_found(in_range, first_ms, last_ms, times)
        divide(session, count if past is None else count + past.read.events)
        checks = [
            unknown_metrics(replies.where(is_asked), place.of_number),
            check_times(replies, place.of_number),
        ]
        unanswered = 0
        all_controls_seen = {name: each for name, (each, _) in by_partitioner.items()}
        for partitioner, log in logs.items():
            one = _Partitioner(
                entry, partitioner, all_controls_seen, columns, log, replies, past, times, place
            )
            checks += one.checks(sample)
            unanswered += one.unanswered
        checks += check_derived(replies, logs, entry, all_controls_seen, times, _OF_ID, place)
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
        not_compared=[
            NotCompared.of_mixed_ids(column_name(name), mixed)
            for name, mixed in zip(logs, not_compared)
            if mixed
        ],
        history=None if past is None else past.read,
    )


def _columns(all_controls_seen: Iterable[ControlHistory]) -> list[Answered]:
    """A column of the replies for each metric that there ever was."""
    lives = {added: life for each in all_controls_seen for added, life in each.lives.items()}
    return [
        Answered.of(f"r_{added}", life.metric.name, life.metric.resolved.result_type)
        for added, life in sorted(lives.items())
    ]


def _numbered(replies: DataFrame) -> DataFrame:
    """Replies with how many there are of their id, and which of these each is."""
    alike = Over.partitionBy(REPLY_ID, IN_NO_LOG)
    return replies.withColumns(
        {
            _OF_ID: F.count("*").over(alike),
            _AT_ID: F.row_number().over(alike.orderBy(REPLY_NUMBER)),
        }
    )


class _Partitioner:
    """One partitioner's part. unanswered: events that no recorded reply belongs to."""

    def __init__(
        self,
        entry: StreamEntry,
        partitioner: str,
        all_controls_seen: Mapping[str, ControlHistory],
        columns: Sequence[Answered],
        log: DataFrame,
        replies: DataFrame,
        past: StreamPast | None,
        times: TimeRange,
        place: ReplyPlace,
    ) -> None:
        self._past, self._times, self._place = past, times, place
        stream = self._stream = entry.stream
        self._name, self._controls_seen = partitioner, all_controls_seen[partitioner]
        self._columns = [
            each for each in columns if int(each.column.removeprefix("r_")) in self._controls_seen.lives
        ]
        self._names_elsewhere = {
            life.metric.name
            for name, controls_seen in all_controls_seen.items()
            for life in controls_seen.lives.values()
            if name != partitioner
        } | {each.name for each in lives_of(entry)}
        self._log, self._replies = log.where(f"{CONTROL} IS NULL"), replies
        self._place_in_stream = stream.partitioners.index(partitioner)
        self.unanswered = 0

    def checks(self, sample: float | None) -> list[MetricCheck]:
        """All that is compared."""
        key = text_literal(self._name)
        late = f"{LATE_AT}[{key}]"
        duplicate = f"coalesce(array_contains({DUPLICATE_AT}, {key}), false)"
        column = column_name(self._name)
        claims = [
            Claim(f"late_{column}", LATE, late),
            Claim(f"duplicate_{column}", DUPLICATE, duplicate),
        ]
        values = ValueColumns()
        lives = [life.metric for life in self._controls_seen.lives.values()]
        for metric in lives:
            values.try_add(metric)
        with ExitStack() as stack:
            tasks = self._stream.partitions_of(self._name)
            admission = stack.enter_context(kept(admitted(self._sent(values), self._rules(), tasks)))
            events, lived, installed = self._events(admission, values, stack)
            of_life = {int(each.column[2:]): each.column for each in self._columns}
            rules = LifeRules(events, lived, of_life, self._names_elsewhere)
            passes, left = planned(rules.checked(), values, () if self._past is None else (WORLD,))
            spoken = [
                Spoken(f"late_{column}", late),
                Spoken(f"duplicate_{column}", f"nullif({duplicate}, false)"),
            ]
            spoken += rules.spoken()
            uncertain, self.unanswered = self._uncertain(events, stack)
            checks = check_partitioner(
                events, passes, values.types, claims, sample, has_sure=True, uncertain=uncertain
            )
        place = self._place_in_stream
        elsewhere = f"NOT {sent_to(place)} AND NOT {is_mixed(place)} AND {self._times.holds(REPLY_MS)}"
        unsent = self._replies.where(elsewhere)
        nulls = Unsent(unsent, self._name, REPLY_NUMBER, REPLY_ID, self._place.of_number).checks(spoken)
        checks = [self._placed(joined(check, nulls)) for check in checks]
        return [*installed, *checks, *(MetricCheck(each.name, not_checked=reason) for each, reason in left)]

    def _events(
        self, admission: DataFrame, values: ValueColumns, stack: ExitStack
    ) -> tuple[DataFrame, ControlHistory, list[MetricCheck]]:
        """All that is admitted, with the lives of metrics there; and whether what was installed is what was read."""
        if self._past is None:
            return admission.where(f"NOT {REDELIVERED}"), self._controls_seen, []
        found, tasks = self._past.found[self._name], self._stream.partitions_of(self._name)
        history, seen_behind = self._past.events, self._past.controls_seen[self._name]
        added = {
            each.name: each.dataType
            for each in self._log.schema
            if each.name.startswith(FIELD_PREFIX) and each.name not in history.columns
        }
        history = history.withColumns({name: F.lit(None).cast(each) for name, each in added.items()})
        assert self._stream.id is not None
        fields = list(self._fields())
        behind = Behind(
            found,
            tasks,
            self._stream.types[self._stream.id],
            [*fields, *values.texts.values()],
            [*fields, *values.selected()],
        )
        changes = floors(admission, self._controls_seen, seen_behind, found, tasks)
        rules = replace(self._rules(), changes=changes)
        place = self._stream.partitioners.index(self._name)
        sent = behind.events(admission, history, place)
        made = stack.enter_context(kept(admitted(sent, rules, tasks)))
        check = self._past.check_installed(self._name, made, tasks)
        events = behind.joined(admission.where(f"NOT {REDELIVERED}"), made)
        return events, both(self._controls_seen, seen_behind), [] if check is None else [check]

    def _fields(self) -> dict[str, None]:
        """The columns of all fields that metrics are grouped by."""
        groups = [
            name for life in self._controls_seen.lives.values() for name in life.metric.resolved.group_by
        ]
        return dict.fromkeys(field_column(name) for name in groups)

    def _rules(self) -> AdmissionRules:
        return AdmissionRules(
            Lateness.of(-1, self._stream), self._stream.dedup_events, self._controls_seen.lateness_changes()
        )

    def _sent(self, values: ValueColumns) -> DataFrame:
        """The events beside the reply of their id, where there is one alone of each. Of an id that came with this
        partitioner's field and without it none is looked at.
        """
        past = []
        if self._past is not None:
            past = [f"{EVENT_MS} AS {SENT_MS}", f"{INPUT_COLUMNS[0]} >= 0 AS {FROM_INPUT}", RECORD]
        events = self._log.selectExpr(
            NUMBER,
            TASK,
            EVENT_ID,
            EVENT_MS,
            f"{EVENT_MS} AS {OWN_MS}",
            *INPUT_COLUMNS,
            *self._fields(),
            *values.selected(),
            *past,
        )
        alike = Over.partitionBy(EVENT_ID)
        is_asked = F.expr(self._times.holds(EVENT_MS))
        # An id that comes again is looked at where one of its events is in the range.
        events = events.withColumns(
            {_EVENTS_OF_ID: F.count("*").over(alike), _IS_ASKED: F.max(is_asked).over(alike)}
        )
        first = self._beside().where(f"{_AT_ID} = 1").drop(_AT_ID, REPLY_NUMBER)
        found = events.join(first, events[EVENT_ID] == first[REPLY_ID], "left").drop(REPLY_ID)
        mixed = is_mixed(self._place_in_stream)
        found = found.withColumn(_IS_ASKED, F.expr(f"{_IS_ASKED} AND NOT coalesce({mixed}, false)"))
        is_sure = (
            f"coalesce({_EVENTS_OF_ID} = 1 AND {_OF_ID} = 1 AND coalesce({OF_MS} = {OWN_MS}, true), false)"
        )
        return found.selectExpr(
            "*",
            f"{is_sure} AND {_IS_ASKED} AS {SURE}",
            f"{_OF_ID} IS NOT NULL AND NOT {is_sure} AND {_IS_ASKED} AS {UNSURE}",
        ).drop(_OF_ID, _EVENTS_OF_ID, OF_MS, mixed)

    def _beside(self) -> DataFrame:
        """Of replies what this partitioner's events are compared with."""
        columns = [each.column for each in self._columns]
        columns = [*_BESIDE, is_mixed(self._place_in_stream), *columns]
        return self._replies.where(f"NOT {IN_NO_LOG}").select(columns)

    def _uncertain(self, events: DataFrame, stack: ExitStack) -> tuple[Uncertain | None, int]:
        """The replies to ids that come again; and how many events have no reply."""
        alone = ~F.col(UNSURE) & ~F.col(SURE) & F.col(_IS_ASKED)
        if self._past is not None:
            alone &= F.col(IS_HERE)
        unsure, none = events.agg(
            F.count(F.when(F.col(UNSURE), True)), F.count(F.when(alone, True))
        ).collect()[0]
        if not unsure:
            return None, none
        ids = events.where(UNSURE).select(EVENT_ID).distinct()
        replies = self._replies.where(f"NOT {IN_NO_LOG} AND {sent_to(self._place_in_stream)}")
        own = replies.join(ids, replies[REPLY_ID] == ids[EVENT_ID], "left_semi")
        chosen = own.select([each for each in self._beside().columns if each not in (_AT_ID, _OF_ID)])
        held = stack.enter_context(kept_alone(chosen))
        unsure_here = events.where(f"{UNSURE} AND {IS_HERE}" if self._past is not None else UNSURE)
        return Uncertain(held, REPLY_NUMBER), none + more_than_replies(unsure_here, held)

    def _placed(self, check: MetricCheck) -> MetricCheck:
        """Examples with the places of their events."""
        examples = []
        for each in check.examples:
            if each.place is not None:
                examples.append(each)
                continue
            partition, offset = place_of_number(each.row)
            partition %= self._stream.partitions_of(self._name)
            place = f"{column_name(self._name)}, partition {partition}, offset {offset}"
            examples.append(replace(each, place=place))
        return replace(check, examples=tuple(examples))
