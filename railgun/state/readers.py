"""Reads many keys at once, some at a time, and in several lanes while a task catches up: nobody else needs the
processors then."""

from collections.abc import Sequence
from functools import partial

from rocksdict import Rdict

from reservoir.executor import Lane

# What RocksDB reads in one go stays in the processor's cache, and its memory comes from what it let go of before:
# with 4,096 keys at once each of them costs a third more.
_KEYS_AT_ONCE = 512
# A list is read without the interpreter's lock, which is then waited for: milliseconds, where other threads are busy in
# Python. A single key is read with it, in microseconds.
_FEW_KEYS = 16

Values = list[bytes | None]


class Readers:
    """Shares a list of keys among the thread that asks and lanes, which it closes in the end."""

    def __init__(self, lanes: Sequence[Lane] = ()) -> None:
        self._lanes = tuple(lanes)

    def get(self, database: Rdict, requested: list[bytes]) -> Values:
        """The values of the keys, in their order. Raises what the binding raises."""
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
