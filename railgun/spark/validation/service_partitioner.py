"""Validates one partitioner of a service: computes its results again, and compares them with recorded replies."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from railgun.catalog.catalog import StreamEntry
from railgun.catalog.names import column_name
from railgun.language.typed import Field
from railgun.spark.sessions import kept, kept_alone
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
from railgun.spark.validation.derived_checks import lives_of
from railgun.spark.validation.life_rules import LifeRules
from railgun.spark.validation.lifetimes import ControlHistory
from railgun.spark.validation.partitioner_check import SURE, UNSURE, Claim, Uncertain, check_partitioner
from railgun.spark.validation.redelivery import INPUT_COLUMNS
from railgun.spark.validation.reply_checks import MustBeNull, Unsent, joined
from railgun.spark.validation.reply_records import (
    IN_NO_LOG,
    OF_MS,
    OWN_MS,
    is_mixed,
    more_than_replies,
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
    ReplyPlace,
    ResultColumn,
)
from railgun.spark.validation.report import MetricCheck
from railgun.spark.validation.run_source import EVENT_ID, EVENT_MS, NUMBER, field_column
from railgun.spark.validation.stream_past import StreamPast
from railgun.spark.validation.task_log_source import CONTROL, RECORD, place_of_number
from railgun.spark.validation.time_range import TimeRange
from railgun.spark.validation.translate import FIELD_PREFIX, text_literal
from railgun.spark.validation.worlds import FROM_INPUT, IS_HERE, SENT_MS, WORLD, Behind, both, floors

OF_ID = "replies_of_id"
"""Column of replies: the number of replies to the same id."""
AT_ID = "reply_of_id"
"""Column of replies: the reply's number among those to the same id, from 1."""
_EVENTS_OF_ID = "events_of_id"
_IS_IN_RANGE = "is_in_range"
_BESIDE = (
    *(REPLY_NUMBER, REPLY_ID, OF_MS, OF_ID, AT_ID),
    *(LATE_AT, DUPLICATE_AT, ABSENT, UNFIT, WARMING, PARTIAL),
)
"""The columns of replies that events are compared with, in addition to results."""


class ServicePartitioner:
    """The validation of one partitioner. unanswered: the number of events without a recorded reply."""

    def __init__(
        self,
        entry: StreamEntry,
        partitioner: str,
        all_controls_seen: Mapping[str, ControlHistory],
        columns: Sequence[ResultColumn],
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
        """Return all checks of the partitioner."""
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
            must_be_null = [
                MustBeNull(f"late_{column}", late),
                MustBeNull(f"duplicate_{column}", f"nullif({duplicate}, false)"),
            ]
            must_be_null += rules.must_be_null()
            uncertain, self.unanswered = self._uncertain(events, stack)
            checks = check_partitioner(
                events, passes, values.types, claims, sample, has_sure=True, uncertain=uncertain
            )
        place = self._place_in_stream
        elsewhere = f"NOT {sent_to(place)} AND NOT {is_mixed(place)} AND {self._times.holds(REPLY_MS)}"
        unsent = self._replies.where(elsewhere)
        nulls = Unsent(unsent, self._name, REPLY_NUMBER, REPLY_ID, self._place.of_number).checks(must_be_null)
        checks = [self._placed(joined(check, nulls)) for check in checks]
        return [*installed, *checks, *(MetricCheck(each.name, not_checked=reason) for each, reason in left)]

    def _events(
        self, admission: DataFrame, values: ValueColumns, stack: ExitStack
    ) -> tuple[DataFrame, ControlHistory, list[MetricCheck]]:
        """Admitted events, and the control records that hold for them; with the check of installed history, if any."""
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
        """Return the columns of the recorded fields that metrics are grouped by, each once."""
        keys = [key for life in self._controls_seen.lives.values() for key in life.metric.resolved.keys]
        return dict.fromkeys(field_column(key.name) for key in keys if isinstance(key, Field))

    def _rules(self) -> AdmissionRules:
        return AdmissionRules(
            Lateness.of(-1, self._stream), self._stream.dedup_events, self._controls_seen.lateness_changes()
        )

    def _sent(self, values: ValueColumns) -> DataFrame:
        """Return the events, joined with the reply to their id if the id has one event and one reply.

        Events of an id that came both with this partitioner's field and without it are not compared.
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
        is_in_range = F.expr(self._times.holds(EVENT_MS))
        # An id that comes again is compared if one of its events is in the range.
        events = events.withColumns(
            {_EVENTS_OF_ID: F.count("*").over(alike), _IS_IN_RANGE: F.max(is_in_range).over(alike)}
        )
        first = self._beside().where(f"{AT_ID} = 1").drop(AT_ID, REPLY_NUMBER)
        found = events.join(first, events[EVENT_ID] == first[REPLY_ID], "left").drop(REPLY_ID)
        mixed = is_mixed(self._place_in_stream)
        found = found.withColumn(_IS_IN_RANGE, F.expr(f"{_IS_IN_RANGE} AND NOT coalesce({mixed}, false)"))
        is_sure = (
            f"coalesce({_EVENTS_OF_ID} = 1 AND {OF_ID} = 1 AND coalesce({OF_MS} = {OWN_MS}, true), false)"
        )
        return found.selectExpr(
            "*",
            f"{is_sure} AND {_IS_IN_RANGE} AS {SURE}",
            f"{OF_ID} IS NOT NULL AND NOT {is_sure} AND {_IS_IN_RANGE} AS {UNSURE}",
        ).drop(OF_ID, _EVENTS_OF_ID, OF_MS, mixed)

    def _beside(self) -> DataFrame:
        """Return the columns of replies that this partitioner's events are compared with."""
        columns = [each.column for each in self._columns]
        columns = [*_BESIDE, is_mixed(self._place_in_stream), *columns]
        return self._replies.where(f"NOT {IN_NO_LOG}").select(columns)

    def _uncertain(self, events: DataFrame, stack: ExitStack) -> tuple[Uncertain | None, int]:
        """Return the replies to ids that come again, and the number of events without a reply."""
        alone = ~F.col(UNSURE) & ~F.col(SURE) & F.col(_IS_IN_RANGE)
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
        chosen = own.select([each for each in self._beside().columns if each not in (AT_ID, OF_ID)])
        held = stack.enter_context(kept_alone(chosen))
        unsure_here = events.where(f"{UNSURE} AND {IS_HERE}" if self._past is not None else UNSURE)
        return Uncertain(held, REPLY_NUMBER), none + more_than_replies(unsure_here, held)

    def _placed(self, check: MetricCheck) -> MetricCheck:
        """Return the check, with the places of events in its examples."""
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
