"""Runs, in Spark's executors, the sorted records of a task through the engine's own task processor, into a folder.

Rows are streamed, so memory does not depend on how many there are. A folder is built under another name, and gets its
own when it is complete. So a job that is killed leaves nothing that looks finished.
"""

import json
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from railgun.catalog.names import column_name
from railgun.history.build import HistoryBuild, HistoryPlan
from railgun.history.durable_files import make_all_durable, make_durable, write_whole
from railgun.history.manifest import MANIFEST_PLACE, HistoryManifest, read_manifest
from railgun.spark.backfill.own_rows import due_times
from railgun.spark.backfill.rows import ID, RECORD, TASK, TIME, Counts
from railgun.task.settings import TaskSettings
from railgun.wire.arrow_records import records_of
from railgun.wire.records import Records

BUILT = pa.schema([("task", pa.int32()), ("said", pa.string())])
BUILT_SQL = "task int, said string"
COUNTS = "counts.json"
_UNFINISHED = "building"


@dataclass(frozen=True, slots=True)
class BuildPlace:
    """The place where tasks are built.

    tasks: the folder of finished tasks. All machines see it under one path.
    numbers: by number, the task's (partitioner, partition). The number above all these is that of the counts.
    scratch: a local folder for unfinished tasks, if `tasks` is on slow storage. Whole files are copied from there.
    """

    tasks: Path
    numbers: tuple[tuple[str, int], ...]
    settings: TaskSettings
    scratch: Path | None = None

    def folder(self, number: int) -> Path:
        """Return the folder of a finished task."""
        partitioner, partition = self.numbers[number]
        return self.tasks / column_name(partitioner) / str(partition)

    def is_built(self, number: int) -> bool:
        """Whether a task is finished."""
        return (self.folder(number) / MANIFEST_PLACE).is_file()

    def counts(self) -> Counts | None:
        """Return the counts of all rows; None if counting is not finished."""
        place = self.tasks / COUNTS
        return Counts.from_json(json.loads(place.read_bytes())) if place.is_file() else None


def building(
    plan: HistoryPlan, place: BuildPlace
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for mapInArrow. It takes ROWS sorted by task, time and id, and gives (task, manifest) rows."""

    def build(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        under_way: _Task | _Counts | None = None
        try:
            for number, records, due in _by_task(batches, plan, len(place.numbers)):
                if under_way is None or under_way.number != number:
                    if under_way is not None:
                        yield _report(under_way.number, under_way.finish())
                    is_task = number < len(place.numbers)
                    under_way = _Task(plan, place, number) if is_task else _Counts(place, number)
                under_way.take(records, due)
            if under_way is not None:
                yield _report(under_way.number, under_way.finish())
                under_way = None
        finally:
            if under_way is not None:
                under_way.give_up()

    return build


def remove_unfinished(place: BuildPlace) -> None:
    """Remove what executors left when they were killed. None may be at work."""
    for folder in place.tasks.glob(f"*/*.{_UNFINISHED}-*"):
        shutil.rmtree(folder, ignore_errors=True)


class _Task:
    """A task that is being built."""

    def __init__(self, plan: HistoryPlan, place: BuildPlace, number: int) -> None:
        self.number = number
        self._place, self._final = place, place.folder(number)
        # Spark may run two attempts at the same task at once.
        name = f"{self._final.name}.{_UNFINISHED}-{uuid.uuid4().hex[:8]}"
        self._final.parent.mkdir(parents=True, exist_ok=True)
        self._near = self._final.parent / name
        self._folder = self._near if place.scratch is None else place.scratch / name
        self._folder.mkdir(parents=True)
        self._build = HistoryBuild(self._folder, plan, *place.numbers[number], place.settings)

    def take(self, records: Records, due: NDArray[np.int64] | None) -> None:
        """Process the next records. Empty ones only mark that the task exists. due: see `HistoryBuild.take_own`."""
        if due is not None:
            self._build.take_own(records, due)
            return
        real = np.flatnonzero(np.diff(records.offsets) > 0)
        if len(real):
            # Marks come first, because their time is before all others.
            self._build.take(records.part(int(real[0]), len(records)))

    def finish(self) -> str:
        """Give the folder its final name, and return its manifest."""
        manifest = self._build.finish()
        if self._folder != self._near:
            shutil.copytree(self._folder, self._near)
            shutil.rmtree(self._folder, ignore_errors=True)
            make_all_durable(self._near)
        try:
            self._near.rename(self._final)
        except OSError:
            if not self._place.is_built(self.number):
                raise
            # Another attempt was faster. Its folder has the same content.
            shutil.rmtree(self._near, ignore_errors=True)
        make_durable(self._final.parent)
        return msgspec.json.encode(manifest).decode()

    def give_up(self) -> None:
        """Remove what was built."""
        self._build.give_up()
        for folder in (self._folder, self._near):
            shutil.rmtree(folder, ignore_errors=True)


class _Counts:
    """Adds up the counts of all rows."""

    def __init__(self, place: BuildPlace, number: int) -> None:
        self.number, self._place, self._counts = number, place, Counts()

    def take(self, records: Records, due: NDArray[np.int64] | None) -> None:
        """Add the next counts."""
        for each in records.to_list():
            if each:
                self._counts.add(Counts.from_json(json.loads(each)))

    def finish(self) -> str:
        """Keep the counts beside the tasks, and return them."""
        counts = json.dumps(self._counts.as_json())
        write_whole(self._place.tasks / COUNTS, counts)
        return counts

    def give_up(self) -> None:
        """Do nothing: nothing was written yet."""


def manifests_of(place: BuildPlace) -> list[HistoryManifest]:
    """Return the manifests of all finished tasks, in their order. Raises HistoryDamagedError, OSError."""
    return [read_manifest(place.folder(number)) for number in range(len(place.numbers))]


def _by_task(
    batches: Iterator[pa.RecordBatch], plan: HistoryPlan, tasks_end: int
) -> Iterator[tuple[int, Records, NDArray[np.int64] | None]]:
    """Yield (task, records, times at which they counted).

    The times are None but for a stream's own events from the cut on.
    """
    for batch in batches:
        if not batch.num_rows:
            continue
        tasks = batch.column(TASK).to_numpy()
        is_own = (batch.column(TIME).to_numpy() == plan.cut_ms) & (tasks < tasks_end) & bool(plan.own)
        changes = np.flatnonzero((np.diff(tasks) != 0) | (np.diff(is_own.astype(np.int8)) != 0))
        bounds = [0, *(changes + 1).tolist(), len(tasks)]
        records = records_of(batch.column(RECORD))
        for begin, end in pairwise(bounds):
            keys = batch.column(ID).slice(begin, end - begin)
            due = due_times(keys.cast(pa.binary())) if is_own[begin] else None
            yield int(tasks[begin]), records.part(begin, end), due


def _report(number: int, text: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"task": number, "said": text}], BUILT)
