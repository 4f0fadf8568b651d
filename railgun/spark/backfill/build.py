"""Builds the tasks of a backfill, as if history had come through the stream's log before everything else.

One pass over the history checks, encodes and routes its rows. Spark sorts the records of each task by time, then id.
The engine's own task processor runs over them, in one Spark task for each task of the stream.
"""

import hashlib
import json
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampNTZType

from railgun.catalog.model import StreamDefinition
from railgun.catalog.stream_reading import stream_to_json
from railgun.history.build import HistoryPlan
from railgun.history.durable_files import write_whole
from railgun.plan.program import TIME_MIN
from railgun.spark.backfill.columns import fields_of
from railgun.spark.backfill.own_rows import PIECES_SQL, own_events, own_pieces, reading_own
from railgun.spark.backfill.progress import Progress, watched
from railgun.spark.backfill.report import BackfillReport
from railgun.spark.backfill.rows import ID, RECORD, ROWS_SQL, TASK, TIME, RowRules, routing
from railgun.spark.backfill.source import HistorySource
from railgun.spark.backfill.tasks import (
    BUILT_SQL,
    BuildPlace,
    building,
    manifests_of,
    remove_unfinished,
)
from railgun.spark.errors import HistoryError, WorkTakenError
from railgun.spark.sessions import afterwards, in_force, own_session
from railgun.spark.worker_errors import own_errors
from railgun.state.errors import StoreLockedError
from railgun.state.lock import FolderLock
from railgun.task.settings import MIB, TaskSettings

SETTINGS = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
    # One Spark partition holds exactly one task's records.
    "spark.sql.adaptive.enabled": "false",
}
PLAN, TASKS = "backfill.json", "tasks"
# An empty name means no group. Whatever else the session does is not part of the backfill.
_NO_GROUP = ("", "")
# At most this many Spark tasks read the events that a live stream has accepted.
_OWN_TASKS = 256
# The caches and buffers of one task that an executor builds: 208 MiB.
_TASK_SETTINGS = replace(
    TaskSettings(),
    row_cache_bytes=64 * MIB,
    page_cache_bytes=64 * MIB,
    chunk_cache_bytes=32 * MIB,
    block_cache_bytes=16 * MIB,
    write_buffer_bytes=32 * MIB,
)


@dataclass(frozen=True, slots=True)
class Backfill:
    """A backfill: which history is built, and where.

    source: where the rows of the history are.
    columns: by field, the SQL expression that gives it. A field that is missing here has the column of its name.
    work: the folder for finished tasks. All machines see it under one path. Work that was cut off continues there.
    scratch: a local folder of the executors, if `work` is on slow storage.
    """

    source: HistorySource
    columns: Mapping[str, str]
    work: Path
    scratch: Path | None = None

    @property
    def tasks(self) -> Path:
        """The folder of finished tasks."""
        return self.work / TASKS

    def release(self) -> None:
        """Free the folder for other work. What was built there is not needed any more."""
        (self.work / PLAN).unlink(missing_ok=True)
        shutil.rmtree(self.tasks, ignore_errors=True)

    def begin(
        self, plan: HistoryPlan, files: str, now_ms: int | None, *, has_built: bool
    ) -> tuple[HistoryPlan, int]:
        """Return the plan and the clock, in ms, with which the work in the folder began.

        If none has, this plan begins it now.

        files: the source's mark, see `HistorySource.files_mark`.
        has_built: whether any task is finished there.
        Raises HistoryError if the folder holds work of another backfill. Raises it too if files have changed since a
        task was built: the tasks would not all be of the same history.
        """
        mark, known = self._fingerprint(plan), self._begun()
        if known is not None:
            if known["fingerprint"] != mark:
                raise self._of_another(known)
            if known.get("files") != files:
                if has_built:
                    raise HistoryError(
                        f"{self.work}: what is built there is of {known['said']} as that was, and its files have "
                        "changed since; put them back as they were, or remove the folder to begin anew"
                    )
                self._write({**known, "files": files})
            return replace(plan, history=known["history"]), known["start_ms"]
        start_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        description = f"{plan.stream.name} from {', '.join(self.source.places)}"
        started = {
            "fingerprint": mark,
            "files": files,
            "history": plan.history,
            "start_ms": start_ms,
            "said": description,
        }
        self._write(started)
        return plan, start_ms

    def _write(self, started: Mapping[str, Any]) -> None:
        write_whole(self.work / PLAN, json.dumps(started, indent=1) + "\n")

    def check_free(self) -> None:
        """Raise HistoryError if the folder holds work.

        Called while the stream is not registered: it is of another backfill.
        """
        known = self._begun()
        if known is not None:
            raise self._of_another(known)

    def _begun(self) -> dict[str, Any] | None:
        file = self.work / PLAN
        return json.loads(file.read_text("utf-8")) if file.is_file() else None

    def _of_another(self, known: Mapping[str, Any]) -> HistoryError:
        return HistoryError(
            f"{self.work}: it holds the work of another backfill (of {known['said']}); finish that with the "
            "same arguments (files, --until, --column, --option) and definitions, or remove the folder"
        )

    def _fingerprint(self, plan: HistoryPlan) -> str:
        source = self.source
        told = {
            "source": [source.places, source.format, dict(source.options)],
            "columns": dict(self.columns),
            "schemas": {str(version): stream_to_json(each) for version, each in plan.schemas.items()},
            "metrics": [
                [each.place, each.metric.sql, *(zone.digest for zone in each.metric.resolved.zones)]
                for each in plan.metrics
            ],
            "of": [plan.key.hex(), plan.created, plan.cut_ms, plan.chunk_events, plan.segment_bytes],
            "deepens": plan.history if plan.own else None,
        }
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def check_source(spark: SparkSession, job: Backfill, stream: StreamDefinition, version: int = 1) -> DataFrame:
    """Check the history's columns before any work starts, and return its rows.

    version: the version of the stream's fields.

    Raises HistoryError, ColumnError.
    """
    session = own_session(spark, SETTINGS)
    with in_force(session):
        frame = job.source.read(session, stream.schema(version), job.columns)
        return fields_of(frame, job.source, stream, job.columns)


def build(
    spark: SparkSession,
    job: Backfill,
    plan: HistoryPlan,
    *,
    settings: TaskSettings = _TASK_SETTINGS,
    now_ms: int | None = None,
    told: Progress | None = None,
    rows: DataFrame | None = None,
) -> BackfillReport:
    """Build all tasks that are not built yet.

    settings: the memory of each task that is being built.
    now_ms: the clock that `max_future` counts from.
    told: is told the progress.
    rows: the result of `check_source`, if it was called already.
    Raises WorkTakenError (another job works there), HistoryError and ColumnError before any work starts. Errors of
    Spark come as they are; `own_errors` turns them into this package's.
    """
    began = time.perf_counter()
    if rows is None:
        rows = check_source(spark, job, plan.stream, max(plan.schemas))
    with alone(job.work):
        with own_errors(HistoryError):
            files = job.source.files_mark(rows)
        place = BuildPlace(job.tasks, tuple(plan.tasks), settings, job.scratch)
        left = {key: number for number, key in enumerate(place.numbers) if not place.is_built(number)}
        is_counted = place.counts() is not None
        has_built = is_counted or len(left) < len(place.numbers)
        plan, start_ms = job.begin(plan, files, now_ms, has_built=has_built)
        remove_unfinished(place)
        if left or not is_counted:
            rules = RowRules(
                stream=plan.stream,
                schema=plan.stream.schema(max(plan.schemas)),
                latest_ms=start_ms + plan.stream.future_limit_ms,
                cut_ms=plan.cut_ms,
                is_text=job.source.is_text,
                tasks=left,
                counts=len(place.numbers),
            )
            with _described(spark, plan, len(left), told), in_force(rows.sparkSession):
                _run(rows, rules, plan, place)
    counts = place.counts()
    assert counts is not None
    seconds = time.perf_counter() - began
    return BackfillReport(
        plan.stream.name,
        plan.history,
        plan.cut_ms,
        counts,
        manifests_of(place),
        len(left),
        seconds,
        own_events(plan) if plan.own else None,
        [each.name for each in rows.schema if isinstance(each.dataType, TimestampNTZType)],
        any(each.has_bounds for each in plan.own.values()),
    )


@contextmanager
def alone(work: Path) -> Iterator[None]:
    """Lock a folder, which is made if it is missing. Two jobs would remove each other's unfinished work.

    Raises WorkTakenError.
    """
    work.mkdir(parents=True, exist_ok=True)
    try:
        lock = FolderLock(work)
    except StoreLockedError as error:
        raise WorkTakenError(
            f"{work}: process {error.owner} builds there already; wait until it has ended"
        ) from None
    try:
        yield
    finally:
        lock.release()


def _run(rows: DataFrame, rules: RowRules, plan: HistoryPlan, place: BuildPlace) -> None:
    session = rows.sparkSession
    routed = rows.mapInArrow(routing(rules), ROWS_SQL)
    # A task without events is built too. A mark with a time before all others makes it known.
    marks = [(number, TIME_MIN, b"", b"") for number in [*rules.tasks.values(), rules.counts]]
    marked = routed.union(session.createDataFrame(marks, ROWS_SQL).coalesce(1))
    pieces = own_pieces(plan, rules.tasks) if plan.own else []
    if pieces:
        read = session.createDataFrame(pieces, PIECES_SQL).repartition(min(len(pieces), _OWN_TASKS))
        marked = marked.union(read.mapInArrow(reading_own(plan, rules.tasks), ROWS_SQL))
    spread = marked.repartitionById(rules.counts + 1, F.col(TASK))
    # A Spark partition has the records of one task alone. Spark compares the first column fast.
    ordered = spread.sortWithinPartitions(TIME, ID, RECORD)
    ordered.mapInArrow(building(plan, place), BUILT_SQL).collect()


@contextmanager
def _described(spark: SparkSession, plan: HistoryPlan, left: int, told: Progress | None) -> Iterator[None]:
    """Show the progress of the job on Spark's own pages and on the terminal."""
    context, group = spark.sparkContext, f"railgun-backfill-{plan.history}"
    description = f"railgun backfill: {plan.stream.name}, {left} of {len(plan.tasks)} tasks"
    context.setJobGroup(group, description, interruptOnCancel=True)
    watching = nullcontext() if told is None else watched(context, group, told)
    with afterwards(lambda: context.setJobGroup(*_NO_GROUP)), watching:
        yield
