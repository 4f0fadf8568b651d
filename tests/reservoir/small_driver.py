"""A driver with small chunks in memory, and a log in which time goes on steadily."""

from pathlib import Path

from reservoir.reservoir import Settings
from tests.reservoir.event_log import EventLog, Record
from tests.reservoir.log_driver import LogDriver
from tests.reservoir.memory_files import MemoryFiles

FOLDER = Path("reservoir")


def driver_of(log: EventLog, **settings: int) -> LogDriver:
    chosen = {
        "chunk_events": 16,
        "segment_bytes": 20_000,
        "cache_bytes": 1 << 20,
        "changelog_entries": 1 << 12,
    }
    return LogDriver(FOLDER, log, Settings(bytes(16), **{**chosen, **settings}), MemoryFiles())


def steady_log(n: int, step: int, lateness: int = 0) -> EventLog:
    log = EventLog(lateness)
    for k in range(n):
        log.add(Record(k * step, True, k, None, k % 5))
    return log
