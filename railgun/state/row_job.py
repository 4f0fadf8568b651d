"""One load of rows: the arrays between the kernels and the store."""

import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from railgun.state.errors import StoreCorruptionError, StoreVersionError
from railgun.state.keys import ROW_KEY_BYTES, row_key_parts
from railgun.state.row_context import GROUP_CLASS, ROWS_EPOCH
from railgun.state.row_groups import RowGroups
from railgun.state.row_load import (
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
    JOB_ROWS,
    JOB_SCRATCH,
    JOB_VALUES,
    JOB_WORDS,
    KEPT_HEAD_BYTES,
    NO_MAP,
    displace,
    fill_rows,
    place_missing,
)
from railgun.state.row_memory import RowMemory
from railgun.state.store import Store
from railgun.state.values import BODY_FORMAT, HEADER_BYTES
from reservoir.compiled import address


class LoadJob:
    """Places missing rows, reads their values, fills them. Used again for every load."""

    def __init__(self, memory: RowMemory, groups: RowGroups, store: Store) -> None:
        self._memory = memory
        self._groups = groups
        self._store = store
        self._words = np.zeros(JOB_WORDS, np.int64)
        self._missing = np.zeros((0, 3), np.uint64)
        self._kept = np.zeros(0, np.uint8)
        self._make_arrays(256)

    def begin(self, missing: npt.NDArray[np.uint64], n: int) -> None:
        """Take on the first n entries of missing, which must stay as they are until the end."""
        if n > len(self._rows):
            self._make_arrays(2 * n)
        self._missing = missing
        words = self._words
        words[JOB_MISSING // 8] = address(missing)
        words[JOB_N // 8] = n
        for word in (JOB_AT, JOB_COUNT, JOB_OFFSET, JOB_FILLED):
            words[word // 8] = 0

    def begin_scratch(self, n: int) -> npt.NDArray[np.int64]:
        """Take on n rows outside the table, to be unpacked only: the array for their addresses."""
        if n > len(self._rows):
            self._make_arrays(2 * n)
        for word, value in ((JOB_COUNT, n), (JOB_OFFSET, 0), (JOB_FILLED, 0), (JOB_KEPT, 0)):
            self._words[word // 8] = value
        return self._rows[:n]

    @property
    def count(self) -> int:
        """Rows placed."""
        return int(self._words[JOB_COUNT // 8])

    @property
    def left(self) -> int:
        """Entries not looked at yet."""
        return int(self._words[JOB_N // 8] - self._words[JOB_AT // 8])

    @property
    def group(self) -> int:
        """Group of the entry that is next."""
        return int(self._missing[int(self._words[JOB_AT // 8]), 0])

    @property
    def slot_class(self) -> int:
        """Class of slots of that group."""
        return int(self._memory.groups[self.group, GROUP_CLASS // 8])

    def place(self) -> int:
        """Place rows until done or until something is in the way: a status of `place_missing`."""
        return int(place_missing(self._memory.address, address(self._words)))

    def displace(self) -> None:
        """Take back what was placed: the load has failed."""
        displace(self._memory.address, address(self._words))

    def fill(self) -> None:
        """Read the values of the rows placed, and unpack them."""
        count = self.count
        if count == 0:
            return
        content = self._keys[: count * ROW_KEY_BYTES].tobytes()
        wanted = [content[at : at + ROW_KEY_BYTES] for at in range(0, len(content), ROW_KEY_BYTES)]
        values = self._store.get_values(wanted)
        room = count * KEPT_HEAD_BYTES + sum(len(value) for value in values if value is not None)
        if room > self._kept.size:
            self._kept = np.zeros(2 * room, np.uint8)
        self._words[JOB_KEPT // 8] = address(self._kept)
        self._words[JOB_KEPT_BYTES // 8] = 0
        self.unpack(wanted, values)
        kept = int(self._words[JOB_KEPT_BYTES // 8])
        if kept:
            epoch = int(self._memory.context[ROWS_EPOCH // 8])
            self._store.keep(epoch, self._kept[:kept].tobytes())

    def unpack(self, wanted: list[bytes], values: Sequence[bytes | None]) -> None:
        """Unpack the values of the keys into the rows placed."""
        count = len(wanted)
        self._lengths[:count] = [-1 if value is None else len(value) for value in values]
        joined = np.frombuffer(b"".join(filter(None, values)) or b"\0", np.uint8)
        words = self._words
        words[JOB_VALUES // 8] = address(joined)
        words[JOB_SCRATCH // 8] = address(self._groups.scratch)
        while (status := fill_rows(self._memory.address, address(words))) != FILLED:
            at = int(words[JOB_FILLED // 8])
            value = values[at] or b""
            if status == NO_MAP:
                (version,) = struct.unpack_from("<I", value, HEADER_BYTES)
                self._groups.work_out(row_key_parts(wanted[at])[0], version)
                continue
            if len(value) >= HEADER_BYTES and value[HEADER_BYTES - 1] > BODY_FORMAT:
                raise StoreVersionError(self._store.folder, f"the row {wanted[at].hex()} has a newer format")
            raise StoreCorruptionError(
                self._store.folder, "read", f"the row {wanted[at].hex()} does not fit any layout of its group"
            )

    def _make_arrays(self, capacity: int) -> None:
        self._rows = np.zeros(capacity, np.int64)
        self._keys = np.zeros(capacity * ROW_KEY_BYTES, np.uint8)
        self._lengths = np.zeros(capacity, np.int64)
        self._words[JOB_ROWS // 8] = address(self._rows)
        self._words[JOB_KEYS // 8] = address(self._keys)
        self._words[JOB_LENGTHS // 8] = address(self._lengths)
