"""The least that stages of an engine could take on this machine: the time of moving their bytes."""

import time
from collections.abc import Callable

import numpy as np

from bench.unit_cases import ROW_BYTES

# Bytes that no cache holds, ids that are remembered, words of three results with their notes.
_MOVED_BYTES, _CHANGED, _TRIES = 64 << 20, 1 << 18, 5
_ID_BYTES, _REMEMBERED_IDS, _RESULT_BYTES = 16, 1 << 20, 3 * 9


def least_ns(text: float, record: float, reply: float, rows: int) -> dict[str, float]:
    """Return what stages cannot do without, on this machine: the time of moving their bytes, in ns per event.

    text, record, reply: bytes of an event's text, its record and its reply as JSON.  rows: of state.
    """
    read, copy = _read_ns_per_byte(), _copy_ns_per_byte()
    return {
        "read_json": text * read,
        "make_records": record * copy,
        "hand_to_log": record * copy,
        "decode_records": record * read,
        "find_duplicates": _change_ns(_ID_BYTES, _REMEMBERED_IDS),
        "append_to_reservoir": record * copy,
        # The event that comes changes a row, and so does the one that leaves the window.
        "update_state": 2 * _change_ns(ROW_BYTES, rows),
        "collect_results": _RESULT_BYTES * copy,
        "write_json": reply * copy,
    }


def _best_ns(work: Callable[[], object]) -> float:
    """Return the least processor time of some runs, after one that is not counted."""
    found = []
    for _ in range(_TRIES + 1):
        begun_ns = time.thread_time_ns()
        work()
        found.append(time.thread_time_ns() - begun_ns)
    return min(found[1:])


def _read_ns_per_byte() -> float:
    words = np.ones(_MOVED_BYTES // 8, np.uint64)
    return _best_ns(lambda: np.bitwise_xor.reduce(words)) / _MOVED_BYTES


def _copy_ns_per_byte() -> float:
    source = np.ones(_MOVED_BYTES, np.uint8)
    target = np.zeros(_MOVED_BYTES, np.uint8)
    return _best_ns(lambda: np.copyto(target, source)) / _MOVED_BYTES


def _change_ns(size_bytes: int, rows: int) -> float:
    """Return how long it takes to read and write a row, of as many, that nobody has looked at lately."""
    table = np.zeros((rows, size_bytes // 8), np.uint64)
    places = np.random.default_rng(1).integers(0, rows, _CHANGED)

    def change() -> None:
        table[places] = table[places]

    return _best_ns(change) / _CHANGED
