"""Finds the undo entries that have to be restored when epochs (the times between checkpoints) are undone.

`Store` undoes the epochs that did not commit. An undo entry keeps the old value of a key. Most values are kept in case
they are overwritten, and then are not. So each write lists a mark of four bytes for each key that it wrote in an epoch.
An undo entry is passed over if no write of its epoch listed its key's mark. Two keys may have the same mark; the entry
then restores a value that is there already.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from railgun.state import keys
from railgun.state.errors import StoreCorruptionError
from railgun.state.values import ABSENT_LENGTH, UNDO_ENTRY, undo_entry
from reservoir.native.jit import address, jit, ld8, ld32, ld64, sti64

MARK_BYTES = 4
_MARKS = 1 << 22
_ENTRY_BYTES = UNDO_ENTRY.size
_CUT_SHORT = np.int64(-1)


def mark_of(key: bytes) -> bytes:
    """Return the mark of a key: its last bytes, which are those of a hash or a number."""
    return (b"\0\0\0" + key)[-MARK_BYTES:]


@jit
def _overwritten(values: int, ends: int, n_values: int, marks: int, found: int) -> Any:
    """Write to `found` the offsets of the entries whose keys are marked. Returns how many, or CUT_SHORT.

    values: undo values that lie end to end. ends: where each of them ends.
    """
    at, n = np.int64(0), np.int64(0)
    for v in range(n_values):
        value_end = np.int64(ld64(ends + 8 * v))
        while at < value_end:
            if at + _ENTRY_BYTES > value_end:
                return _CUT_SHORT
            key_bytes = np.int64(ld8(values + at)) | np.int64(ld8(values + at + 1)) << 8
            old_bytes = np.int64(ld32(values + at + 2))
            end = at + _ENTRY_BYTES + key_bytes + (0 if old_bytes == ABSENT_LENGTH else old_bytes)
            if end > value_end:
                return _CUT_SHORT
            mark = np.int64(0)
            last = values + at + _ENTRY_BYTES + key_bytes - 1
            for k in range(min(int(key_bytes), MARK_BYTES)):
                mark |= np.int64(ld8(last - k)) << (8 * k)
            if ld8(marks + (mark & (_MARKS - 1))) != 0:
                sti64(found + 8 * n, at)
                n += 1
            at = end
    return n


class WrittenKeys:
    """The marks of the keys that were written in each epoch. listed: (key in the store, marks) of each write."""

    def __init__(self, listed: Iterable[tuple[bytes, bytes]]) -> None:
        self._by_epoch = {
            epoch: _table(b"".join(marks for _, marks in of_epoch))
            for epoch, of_epoch in groupby(listed, lambda item: keys.epoch_of(item[0]))
        }

    def overwritten(
        self, folder: Path, epoch: int, values: Sequence[bytes]
    ) -> Iterator[tuple[bytes, bytes | None]]:
        """Iterate over (key, old value) of those undo entries of an epoch whose keys may have been written in it.

        If the epoch has no marks at all, these are all its entries. Raises StoreCorruptionError.
        """
        marks = self._by_epoch.get(epoch)
        if marks is None:
            marks = self._by_epoch[epoch] = np.ones(_MARKS, np.uint8)
        content = b"".join(values)
        ends = np.cumsum([len(value) for value in values], dtype=np.int64)
        found = np.zeros(len(content) // _ENTRY_BYTES + 1, np.int64)
        in_content = address(np.frombuffer(content, np.uint8))
        n = int(_overwritten(in_content, address(ends), len(values), address(marks), address(found)))
        if n == _CUT_SHORT:
            raise StoreCorruptionError(folder, "recover", f"an undo entry of epoch {epoch} is cut short")
        for at in found[:n].tolist():
            yield undo_entry(folder, content, at)[:2]


def _table(marks: bytes) -> npt.NDArray[np.uint8]:
    """(_MARKS,) uint8: 1 at each mark that occurs."""
    table = np.zeros(_MARKS, np.uint8)
    table[np.frombuffer(marks, ">u4") & (_MARKS - 1)] = 1
    return table
