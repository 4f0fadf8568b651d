"""Reads the state of tasks for monitoring.

Engines and units call it in the thread that runs the tasks; it takes tens of microseconds and does no I/O.
"""

from collections.abc import Iterable

from railgun.language.ast import WindowKind
from railgun.plan.program import TIME_MIN
from railgun.task.metrics import LiveMetric
from railgun.task.processor import TaskProcessor
from railgun.telemetry.reading import EngineReading, TaskReading


def read_tasks(of: Iterable[TaskProcessor], now_s: float) -> EngineReading:
    """Return a reading of tasks. now_s: the present time by the monotonic clock, in seconds."""
    return EngineReading(now_s, tuple(_read(task) for task in of))


def filled(task: TaskProcessor) -> dict[str, float]:
    """Return how far the fill of each warming metric of a task has come, by name.

    The value is the share (0 to 1) of the event time that the fill has read.
    """
    return {name: _filled(task, metric) for name, metric in task.metrics.by_name.items() if not metric.warm}


def _filled(task: TaskProcessor, metric: LiveMetric) -> float:
    fill = task.metrics.fills[metric.generation]
    if fill.full:
        return 1.0
    end_ms = task.admission.clock_ms - metric.definition.resolved.window.delay_ms
    begin_ms = _begin_ms(task, metric, fill.start_ms, end_ms)
    if fill.filled_ms == TIME_MIN or end_ms <= begin_ms:
        return 0.0
    return min(1.0, max(0.0, (fill.filled_ms - begin_ms) / (end_ms - begin_ms)))


def _begin_ms(task: TaskProcessor, metric: LiveMetric, start_ms: int, end_ms: int) -> int:
    """Return where the metric's present window begins, or its fill if that began earlier, or the oldest stored event if
    that is later, in ms.

    Events that have left the window since the fill began are read too: a fill that stands among them advances.
    """
    window = metric.definition.resolved.window
    kept_ms = task.reservoir.oldest_ms
    oldest_ms = end_ms if kept_ms is None else kept_ms
    if window.kind is WindowKind.INFINITE or window.size_ms is None:
        return oldest_ms
    return max(oldest_ms, min(start_ms, end_ms - window.size_ms))


def _read(task: TaskProcessor) -> TaskReading:
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
        filled=filled(task),
    )
