"""How tasks stand, for monitoring: read by the thread that runs them, in tens of microseconds."""

import time
from collections.abc import Iterable, Sequence

from railgun.plan.program import TIME_MIN
from railgun.task.metrics import LiveMetric
from railgun.task.processor import TaskProcessor
from railgun.telemetry.reading import EngineReading, TaskReading


class TaskReader:
    """Reads tasks, again and again: how far a fill has come is told from where it was first met."""

    def __init__(self) -> None:
        self._begun_ms: dict[tuple[TaskProcessor, int], int] = {}

    def read(self, of: Iterable[TaskProcessor]) -> EngineReading:
        """How all tasks there are stand now."""
        tasks = list(of)
        self.keep(tasks)
        return EngineReading(time.monotonic(), tuple(_read(task, self._fill_ratio(task)) for task in tasks))

    def keep(self, tasks: Sequence[TaskProcessor]) -> None:
        """Forget what was noted of all others."""
        self._begun_ms = {
            (task, generation): begun_ms
            for (task, generation), begun_ms in self._begun_ms.items()
            if task in tasks and generation in task.metrics.fills
        }

    def _fill_ratio(self, task: TaskProcessor) -> float:
        shares = self.filled(task).values()
        return sum(shares) / len(shares) if shares else 1.0

    def filled(self, task: TaskProcessor) -> dict[str, float]:
        """By name of each metric that is warming: what it has read, 0 to 1, of the event time it has to read."""
        return {
            name: self._filled(task, metric)
            for name, metric in task.metrics.by_name.items()
            if not metric.warm
        }

    def _filled(self, task: TaskProcessor, metric: LiveMetric) -> float:
        fill = task.metrics.fills[metric.generation]
        if fill.full:
            return 1.0
        if fill.filled_ms == TIME_MIN:
            return 0.0
        begun_ms = self._begun_ms.setdefault((task, metric.generation), fill.filled_ms)
        end_ms = task.admission.clock_ms - metric.definition.resolved.window.delay_ms
        return min(1.0, max(0.0, (fill.filled_ms - begun_ms) / max(1, end_ms - begun_ms)))


def _read(task: TaskProcessor, fill_ratio: float) -> TaskReading:
    who, clock_ms = task.identity, task.admission.clock_ms
    rows, pages, reservoir = task.table.stats(), task.pool.stats(), task.reservoir.stats()
    return TaskReading(
        stream=who.stream,
        partitioner=who.partitioner,
        partition=who.partition,
        position=task.position,
        checkpoint=task.checkpoints.durable_position,
        clock_s=0.0 if clock_ms == TIME_MIN else clock_ms / 1000,
        unreadable_records=task.unreadable_records,
        checkpoints=task.checkpoints.taken,
        checkpoint_s=task.checkpoints.last_s,
        state_written_bytes=task.store.written_bytes,
        rows=rows.resident,
        rows_bytes=rows.used_bytes,
        rows_loaded=rows.loaded,
        rows_evicted=rows.evicted,
        pages_bytes=pages.size_bytes,
        page_operations=pages.operations,
        page_faults=pages.faults,
        chunks=reservoir.chunks,
        chunks_pending=reservoir.pending_chunks,
        chunk_cache_bytes=reservoir.cache_bytes,
        chunk_hits=reservoir.cache.hits,
        chunk_misses=reservoir.cache.misses,
        chunks_wasted=reservoir.cache.wasted,
        open_rows=reservoir.open_rows,
        open_bytes=reservoir.open_bytes,
        metrics=len(task.metrics.by_name),
        metrics_warming=len(task.metrics.warming),
        fill_ratio=fill_ratio,
    )
