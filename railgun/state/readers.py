"""Reading many keys at once, some at a time, and with several threads while a task catches up: nobody else needs the
cores then."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from rocksdict import Rdict

# What RocksDB reads in one go stays in the processor's cache, and its memory comes from what it let go of before:
# with 4,096 keys at once each of them costs a third more.
_KEYS_AT_ONCE = 512
# A list is read without the interpreter's lock, which is then waited for: milliseconds, where other threads are busy in
# Python. A single key is read with it, in microseconds.
_FEW_KEYS = 16

Values = list[bytes | None]


class Readers:
    """Threads that share a list of keys among them; the one that asks is one of them."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads - 1, "reader") if threads > 1 else None

    def get(self, database: Rdict, wanted: list[bytes]) -> Values:
        """The values of the keys, in their order. Raises what the binding raises."""
        if len(wanted) <= _FEW_KEYS:
            return [database.get(key) for key in wanted]
        if len(wanted) <= _KEYS_AT_ONCE:
            values: Values = database.get(wanted)
            return values
        parts = [wanted[first : first + _KEYS_AT_ONCE] for first in range(0, len(wanted), _KEYS_AT_ONCE)]
        found: list[Values] = [[]] * len(parts)
        if self._pool is None:
            found = _read(database, parts)
        else:
            step = self._threads
            others = [self._pool.submit(_read, database, parts[first::step]) for first in range(1, step)]
            found[::step] = _read(database, parts[::step])
            for first, other in enumerate(others, 1):
                found[first::step] = other.result()
        return [value for part in found for value in part]

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()


def _read(database: Rdict, parts: Sequence[list[bytes]]) -> list[Values]:
    return [database.get(part) for part in parts]
