"""Runs a stream over files for `railgun run`, with the same tasks as an engine.

Nothing is durable, as the files take the place of the log.
"""

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from railgun.catalog.changes import AddMetric, Change, PutStream, change_to_json
from railgun.catalog.model import MetricDefinition, StreamDefinition
from railgun.catalog.names import column_name
from railgun.config.processors import processors
from railgun.host.memory import LIMIT_BYTES, MemoryShares
from railgun.ingest.answers import forms_of
from railgun.ingest.derived import DerivedMetrics
from railgun.ingest.result_table import result_table
from railgun.ingest.routing import Router
from railgun.ingest.stream_tasks import Feed, StreamTasks
from railgun.ingest.time_unit import TimeUnit
from railgun.language.derive import ResolvedDerived
from railgun.task.environment import TaskEnvironment
from railgun.task.processor import TaskIdentity, TaskProcessor
from railgun.task.recovery import open_task
from railgun.task.replies import Replies, discard_replies
from railgun.task.settings import TaskSettings
from railgun.wire.columns import EventColumns
from railgun.wire.control_records import encode_control
from railgun.wire.encode import encode_columns
from railgun.wire.records import Records
from reservoir.files import DiskFiles

_SCHEMA_VERSION = 1
_NEVER_S = float("inf")


class OfflineRun:
    """Scores the events of one stream in the order given, as if its log held them in that order.

    metrics, derived: all metrics of the stream. They exist from before the first event.
    folder: where tasks put what does not fit into memory. It must be empty, and is not removed. None makes a
        temporary folder, which `close` removes.
    settings: the most that each task gets of the limit in `railgun.host.memory`.
    environment: clocks, randomness and executor for the tasks.

    Every method raises StoreError, ReservoirError, TaskError and OSError. The run cannot be used after an error.
    """

    def __init__(
        self,
        stream: StreamDefinition,
        metrics: Sequence[MetricDefinition],
        folder: Path | None = None,
        settings: TaskSettings | None = None,
        environment: TaskEnvironment | None = None,
        derived: Sequence[ResolvedDerived] = (),
    ) -> None:
        self._stream, self._metrics = stream, tuple(metrics)
        self._names = [each.name for each in metrics] + [each.name for each in derived]
        self._derived = DerivedMetrics(derived)
        self._forms = forms_of(stream.partitioners, self._metrics)
        self._router, self._time_unit = Router(stream), TimeUnit(stream)
        self._schema = stream.schema(_SCHEMA_VERSION)
        self._temporary = Path(tempfile.mkdtemp(prefix="railgun-run-")) if folder is None else None
        self._folder = self._temporary or Path(folder or "")
        try:
            never = replace(
                settings or TaskSettings(),
                checkpoint_interval_s=_NEVER_S,
                checkpoint_bytes=sys.maxsize,
                replay_s=_NEVER_S,
            )
            tasks = len(stream.tasks)
            self._tasks = self._open(
                MemoryShares(never, LIMIT_BYTES).take(tasks), environment or TaskEnvironment()
            )
            self._feeds = self._fed()
        except BaseException:
            self._remove()
            raise

    def score(self, events: EventColumns) -> pa.Table:
        """Return a table with a row for each event, in order. `railgun.ingest.result_table` describes the columns."""
        self._time_unit.look(events.times)
        records = encode_columns(self._schema.version, events)
        task_batches = self._feeds.task_batches(records, self._router.shares(events))
        answers = self._feeds.process(task_batches, self._forms, len(events))
        for task in self._tasks:
            task.work()
            if self._temporary is not None:
                # A temporary run is never recovered, so events that have left every window can be dropped.
                task.reservoir.drop_before(task.admission.clock_ms)
        derived = self._derived.answers(events, self._schema, answers)
        return result_table(self._stream, self._names, events, answers, with_life=False, derived=derived)

    def close(self) -> None:
        """Close all tasks, and remove a temporary folder."""
        try:
            self._feeds.close()
            _close(self._tasks)
        finally:
            self._remove()

    def _remove(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _open(self, settings: TaskSettings, environment: TaskEnvironment) -> list[TaskProcessor]:
        key, opened = environment.randomness(16), list[TaskProcessor]()
        try:
            for partitioner, partition in self._stream.tasks:
                identity = TaskIdentity(self._stream.name, partitioner, partition, key)
                folder = self._folder / column_name(partitioner) / str(partition)
                opened.append(
                    open_task(folder, identity, DiskFiles(), _no_log, settings, environment=environment)
                )
                opened[-1].process(self._controls(partitioner), opened[-1].position, discard_replies)
        except BaseException:
            _close(opened)
            raise
        return opened

    def _fed(self) -> StreamTasks:
        feeds: dict[str, list[Feed]] = {name: [] for name in self._stream.partitioners}
        for task in self._tasks:
            feeds[task.identity.partitioner].append(_feed(task))
        return StreamTasks(feeds, processors())

    def _controls(self, partitioner: str) -> Records:
        """Return the control records at the beginning of a task's log."""
        put = PutStream(1, self._stream, _SCHEMA_VERSION)
        homely = [metric for metric in self._metrics if metric.home == partitioner]
        changes: list[Change] = [put, *(AddMetric(place, metric) for place, metric in enumerate(homely, 2))]
        return Records.of([encode_control(change_to_json(change)) for change in changes])


def _feed(task: TaskProcessor) -> Feed:
    def feed(records: Records, deliver: Callable[[Replies], None], /) -> None:
        task.process(records, task.position, deliver)

    return feed


def _close(tasks: Iterable[TaskProcessor]) -> None:
    """Close every task. An error does not keep the others open; the first error is raised."""
    with ExitStack() as closing:
        for task in tasks:
            closing.callback(task.close)


def _no_log(first: int, end: int) -> Iterable[tuple[int, Records]]:
    return ()
