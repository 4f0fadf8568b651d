"""Readings of tasks, made by the thread that runs them (railgun/host/reading.py), so that nothing waits and nothing
races. Plain data.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskReading:
    """A reading of one task. Sizes are in bytes; counts begin when the task is opened.

    position: the offset of the next record that it takes.
    checkpoint: the offset up to which the last durable checkpoint covers the log.
    clock_s: the task's event time in seconds since 1970; 0 before the first event.
    checkpoint_s, checkpoint_bytes: how long the last checkpoint took, and what it wrote.
    chunk_misses: how many decoded chunks a cursor had to wait for.
    filled: how much of its history each warming metric has read, from 0 to 1, by name.
    """

    stream: str
    partitioner: str
    partition: int
    position: int
    checkpoint: int
    clock_s: float
    unreadable_records: int
    checkpoints: int
    checkpoint_s: float
    state_written_bytes: int
    rows: int
    rows_bytes: int
    rows_loaded: int
    rows_evicted: int
    pages_bytes: int
    page_operations: int
    page_faults: int
    chunks: int
    chunks_pending: int
    chunk_cache_bytes: int
    chunk_hits: int
    chunk_misses: int
    chunks_wasted: int
    open_rows: int
    open_bytes: int
    metrics: int
    metrics_warming: int
    filled: Mapping[str, float]

    @property
    def fill_ratio(self) -> float:
        """How much of their history warming metrics have read, on average; 1 if none is warming."""
        return sum(self.filled.values()) / len(self.filled) if self.filled else 1.0


@dataclass(frozen=True, slots=True)
class EngineReading:
    """The readings of all tasks at one moment of time.monotonic."""

    at_s: float
    tasks: tuple[TaskReading, ...]


@dataclass(frozen=True, slots=True)
class DiskReading:
    """The bytes of files by what they hold, and the free space of the file system."""

    events_bytes: int
    state_bytes: int
    log_bytes: int
    free_bytes: int
