"""Runs a stream over files for `railgun run`, with the same tasks as an engine.

Nothing is durable, as the files take the place of the log.
"""

import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from railgun.catalog.model import MetricDefinition, StreamDefinition
from railgun.config.processors import processors
from railgun.engine.offline_tasks import SCHEMA_VERSION, close_tasks, open_tasks
from railgun.ingest.answers import forms_of
from railgun.ingest.derived import DerivedMetrics
from railgun.ingest.result_table import result_table
from railgun.ingest.routing import Router
from railgun.ingest.stream_tasks import Feed, StreamTasks
from railgun.ingest.time_unit import TimeUnit
from railgun.language.derive import ResolvedDerived
from railgun.task.environment import TaskEnvironment
from railgun.task.processor import TaskProcessor
from railgun.task.replies import Replies
from railgun.task.settings import TaskSettings
from railgun.wire.columns import EventColumns
from railgun.wire.encode import encode_columns
from railgun.wire.records import Records

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
        self._schema = stream.schema(SCHEMA_VERSION)
        self._temporary = Path(tempfile.mkdtemp(prefix="railgun-run-")) if folder is None else None
        self._folder = self._temporary or Path(folder or "")
        try:
            never = replace(
                settings or TaskSettings(),
                checkpoint_interval_s=_NEVER_S,
                checkpoint_bytes=sys.maxsize,
                replay_s=_NEVER_S,
            )
            self._tasks = open_tasks(
                stream, self._metrics, self._folder, never, environment or TaskEnvironment()
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
            close_tasks(self._tasks)
        finally:
            self._remove()

    def _remove(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _fed(self) -> StreamTasks:
        feeds: dict[str, list[Feed]] = {name: [] for name in self._stream.partitioners}
        for task in self._tasks:
            feeds[task.identity.partitioner].append(_feed(task))
        return StreamTasks(feeds, processors())


def _feed(task: TaskProcessor) -> Feed:
    def feed(records: Records, deliver: Callable[[Replies], None], /) -> None:
        task.process(records, task.position, deliver)

    return feed
