"""Loads rows, for `EntityTable` and `RowReader`: holds the arrays through which the kernels (load.py) and the store
exchange keys and values.
"""

import struct
from array import array
from collections.abc import Sequence
from typing import Never

import numpy as np
import numpy.typing as npt

from railgun.state.errors import StoreCorruptionError, StoreVersionError
from railgun.state.keys import ROW_KEY_BYTES, row_key_parts
from railgun.state.rows.context import GROUP_CLASS, ROWS_EPOCH
from railgun.state.rows.groups import RowGroups
from railgun.state.rows.load import (
    FILLED,
    JOB_AT,
    JOB_COUNT,
    JOB_FILLED,
    JOB_KEPT,
    JOB_KEPT_BYTES,
    JOB_KEYS,
    JOB_LENGTHS,
    JOB_MISSING,
    JOB_N,
    JOB_OFFSET,
    JOB_OUTDATED_VERSION,
    JOB_ROWS,
    JOB_SCRATCH,
    JOB_VALUES,
    JOB_WORDS,
    KEPT_HEAD_BYTES,
    NO_MAP,
    fill_rows,
    place_missing,
    undo_load,
)
from railgun.state.rows.memory import RowMemory
from railgun.state.store import Store
from railgun.state.values import HEADER_BYTES, PACKED_FORMAT
from reservoir.native.jit import address


class LoadJob:
    """Places missing rows, reads their values and fills them. One object serves every load.

    A load is `begin`, `place` until it returns PLACED, then `fill`; or `undo_load` after a failure. In between the
    caller does what the status of `place` asks for.

    It uses memoryviews and remembered addresses, because numpy's calls would take most of the time of a load of one
    row.
    """

    def __init__(self, memory: RowMemory, groups: RowGroups, store: Store) -> None:
        self._memory = memory
        self._groups = groups
        self._store = store
        self._array = np.zeros(JOB_WORDS, np.int64)
        self._words = self._array.data
        self._address = address(self._array)
        self._context = memory.context.data
        self._missing = np.zeros((0, 3), np.uint64)
        self._values = self._kept = memoryview(b"")
        self._make_arrays(256)
        self._make_values(4096)
        self._make_kept(4096)

    def begin(self, missing: npt.NDArray[np.uint64], n: int) -> None:
        """Begin a load of the first n entries of `missing`, which must not change until the load ends."""
        if n > len(self._rows):
            self._make_arrays(2 * n)
        words = self._words
        if missing is not self._missing:
            self._missing = missing
            words[JOB_MISSING // 8] = address(missing)
        words[JOB_N // 8] = n
        words[JOB_AT // 8] = words[JOB_COUNT // 8] = words[JOB_OFFSET // 8] = words[JOB_FILLED // 8] = 0
        words[JOB_KEPT // 8] = self._kept_address

    def begin_scratch(self, n: int) -> npt.NDArray[np.int64]:
        """Begin to unpack n rows outside the table. Returns the array for their addresses."""
        if n > len(self._rows):
            self._make_arrays(2 * n)
        for word, value in ((JOB_COUNT, n), (JOB_OFFSET, 0), (JOB_FILLED, 0), (JOB_KEPT, 0)):
            self._words[word // 8] = value
        return self._rows[:n]

    @property
    def count(self) -> int:
        """How many rows were placed."""
        return self._words[JOB_COUNT // 8]

    @property
    def left(self) -> int:
        """How many entries were not looked at yet."""
        return self._words[JOB_N // 8] - self._words[JOB_AT // 8]

    @property
    def group(self) -> int:
        """The group of the next entry."""
        return int(self._missing[self._words[JOB_AT // 8], 0])

    @property
    def outdated_version(self) -> int:
        """The version of the layout of the next entry's row, after `place` has returned RUNS_UNKNOWN."""
        return int(self._words[JOB_OUTDATED_VERSION // 8])

    @property
    def slot_class(self) -> int:
        """The class of slots of the next entry's group."""
        return int(self._memory.groups[self.group, GROUP_CLASS // 8])

    def place(self) -> int:
        """Place rows until all are placed or something prevents it. Returns the status of `place_missing`."""
        return int(place_missing(self._memory.address, self._address))

    def undo_load(self) -> None:
        """Remove the rows that were placed, after the load has failed."""
        undo_load(self._memory.address, self._address)

    def fill(self) -> None:
        """Read the values of the rows placed, and unpack them."""
        count = self.count
        if count == 0:
            return
        content = bytes(self._keys[: count * ROW_KEY_BYTES])
        requested = [content[at : at + ROW_KEY_BYTES] for at in range(0, len(content), ROW_KEY_BYTES)]
        words = self._words
        words[JOB_KEPT_BYTES // 8] = 0
        self.unpack(requested, self._store.get_values(requested))
        # The rows are likely to change in this epoch. With their old values the store need not read them again then.
        kept = words[JOB_KEPT_BYTES // 8]
        if kept:
            self._store.keep(self._context[ROWS_EPOCH // 8], bytes(self._kept[:kept]))

    def unpack(self, requested: list[bytes], values: Sequence[bytes | None]) -> None:
        """Unpack the values of the keys into the rows placed."""
        count, words = len(requested), self._words
        self._lengths[:count] = array("l", [-1 if value is None else len(value) for value in values])
        joined = b"".join(filter(None, values))
        self._make_values(len(joined) + 8)
        self._values[: len(joined)] = joined
        if words[JOB_KEPT // 8]:
            self._make_kept(len(joined) + count * KEPT_HEAD_BYTES)
        words[JOB_SCRATCH // 8] = self._groups.scratch_address
        while (status := int(fill_rows(self._memory.address, self._address))) != FILLED:
            at = words[JOB_FILLED // 8]
            value = values[at] or b""
            if status == NO_MAP:
                (version,) = struct.unpack_from("<I", value, HEADER_BYTES)
                self._groups.work_out(row_key_parts(requested[at])[0], version)
                continue
            self._refuse(requested[at], value)

    def _refuse(self, key: bytes, value: bytes) -> Never:
        folder = self._store.folder
        if len(value) >= HEADER_BYTES and value[HEADER_BYTES - 1] > PACKED_FORMAT:
            raise StoreVersionError(folder, f"the row {key.hex()} has a newer format")
        raise StoreCorruptionError(
            folder, "read", f"the row {key.hex()} does not fit any layout of its group"
        )

    # --- arrays, as large as the largest load ------------------------------------------------------

    def _make_arrays(self, capacity: int) -> None:
        self._rows = np.zeros(capacity, np.int64)
        keys, lengths = np.zeros(capacity * ROW_KEY_BYTES, np.uint8), np.zeros(capacity, np.int64)
        self._keys, self._lengths = keys.data, lengths.data
        self._words[JOB_ROWS // 8] = address(self._rows)
        self._words[JOB_KEYS // 8] = address(keys)
        self._words[JOB_LENGTHS // 8] = address(lengths)

    def _make_values(self, size: int) -> None:
        if size > len(self._values):
            values = np.zeros(2 * size, np.uint8)
            self._values = values.data
            self._words[JOB_VALUES // 8] = address(values)

    def _make_kept(self, size: int) -> None:
        if size > len(self._kept):
            kept = np.zeros(2 * size, np.uint8)
            self._kept = kept.data
            self._kept_address = self._words[JOB_KEPT // 8] = address(kept)
