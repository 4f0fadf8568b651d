"""Reads many keys of RocksDB for `Store`, a part at a time.

While a task catches up, several lanes (queues of background work) share the parts, because nobody else needs the
processors then.
"""

from collections.abc import Sequence
from functools import partial

from rocksdict import Rdict

from reservoir.executor import Lane

# What RocksDB reads for this many keys fits the processor's cache, in memory that it has just freed. With 4,096 keys at
# once, each key costs a third more.
_KEYS_AT_ONCE = 512
# A list is read without the interpreter's lock, and then waits for the lock: milliseconds if other threads are busy in
# Python. A single key is read while holding the lock, in microseconds.
_FEW_KEYS = 16

Values = list[bytes | None]


class Readers:
    """Shares a list of keys among the calling thread and lanes. `close` ends the lanes."""

    def __init__(self, lanes: Sequence[Lane] = ()) -> None:
        self._lanes = tuple(lanes)

    def get(self, database: Rdict, requested: list[bytes]) -> Values:
        """Return the values of the keys, in their order. Raises what RocksDB's binding raises."""
        if len(requested) <= _FEW_KEYS:
            return [database.get(key) for key in requested]
        if len(requested) <= _KEYS_AT_ONCE:
            values: Values = database.get(requested)
            return values
        parts = [
            requested[first : first + _KEYS_AT_ONCE] for first in range(0, len(requested), _KEYS_AT_ONCE)
        ]
        found: list[Values] = [[]] * len(parts)
        step = 1 + len(self._lanes)
        others = [
            lane.submit(partial(_read, database, parts[first::step]))
            for first, lane in enumerate(self._lanes, 1)
        ]
        found[::step] = _read(database, parts[::step])
        for first, other in enumerate(others, 1):
            found[first::step] = other.result()
        return [value for part in found for value in part]

    def close(self) -> None:
        """End the lanes."""
        for lane in self._lanes:
            lane.close()


def _read(database: Rdict, parts: Sequence[list[bytes]]) -> list[Values]:
    return [database.get(part) for part in parts]
