"""Reading many keys at once with several threads: while a task catches up nobody else needs the cores."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from rocksdict import Rdict

# Fewer keys than this take less time than handing them over.
_KEYS_MIN = 256


class Readers:
    """Threads that share a list of keys among them; the one that asks is one of them."""

    def __init__(self, threads: int) -> None:
        self._others = threads - 1
        self._pool = ThreadPoolExecutor(self._others, "reader") if self._others > 0 else None

    def get(self, database: Rdict, wanted: list[bytes]) -> list[bytes | None]:
        """The values of the keys, in their order. Raises what the binding raises."""
        if self._pool is None or len(wanted) < _KEYS_MIN:
            values: list[bytes | None] = database.get(wanted)
            return values
        share = -(-len(wanted) // (self._others + 1))
        parts = [wanted[first : first + share] for first in range(0, len(wanted), share)]
        futures = [self._pool.submit(database.get, part) for part in parts[1:]]
        found: list[Sequence[bytes | None]] = [database.get(parts[0]), *(each.result() for each in futures)]
        return [value for part in found for value in part]

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
