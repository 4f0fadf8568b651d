"""Reads all rows of a group, resident or stored, in the newest layout: for sweeps, digests and value queries."""

import hashlib
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from railgun.state import keys
from railgun.state.rows.context import CURSOR_SEGMENT, ROW_HEAD_BYTES
from railgun.state.rows.groups import RowGroups
from railgun.state.rows.job import LoadJob
from railgun.state.rows.memory import RowMemory
from railgun.state.rows.scan import copy_rows, gather_rows, head_rows, locate_rows
from railgun.state.store import Store
from railgun.state.values import HEADER_BYTES, TOMBSTONE_FORMAT
from reservoir.native.jit import address

Addresses: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = npt.NDArray[np.uint64]

# (group, uint64[n, 2] of (hi, lo), uint64[n, cells]) -> (bool[n] which rows count, uint64[n, m] their logical words).
Logical: TypeAlias = Callable[[int, Words, Words], tuple[npt.NDArray[np.bool_], Words]]

_ROWS = 1024
_DIGEST_BYTES = 16


class RowReader:
    """Reads rows without making them resident. Nothing may change while an iterator of it is in use."""

    def __init__(self, memory: RowMemory, groups: RowGroups, store: Store) -> None:
        self._memory = memory
        self._groups = groups
        self._store = store
        self._job = LoadJob(memory, groups, store)
        self._scratch: Words = np.zeros(0, np.uint64)

    def rows(self, group: int) -> Iterator[tuple[Words, Words]]:
        """Iterate over a group in blocks (uint64[n, 2] hashes (hi, lo), uint64[n, cells]), in no particular order."""
        cells = self._groups.layouts()[group].cells
        cursor = np.zeros(2, np.int64)
        while cursor[CURSOR_SEGMENT // 8] < len(self._memory.segments):
            yield self._copied(group, self.resident(cursor, group, 64 * _ROWS, _ROWS), cells)
        after, stop = keys.group_range(group)
        while after < stop:
            after, found = self.stored(after, stop, _ROWS)
            yield self._copied(group, found, cells)

    def cells_of(self, group: int, hashes: Words) -> Words:
        """Return the cells of some entities of a group, uint64[n, cells]; zeros for entities that have no row.

        hashes: uint64[n, 2] of (hi, lo).
        """
        content = np.zeros((len(hashes), self._groups.layouts()[group].cells), np.uint64)
        requested = [keys.row_key(group, hi, lo) for hi, lo in hashes.tolist()]
        rows = self._located(requested)
        absent = np.flatnonzero(rows == 0)
        if len(absent):
            stored = self._store.get_values([requested[place] for place in absent.tolist()])
            found = [
                (place, value)
                for place, value in zip(absent.tolist(), stored)
                if value is not None and value[HEADER_BYTES - 1] != TOMBSTONE_FORMAT
            ]
            unpacked = self._unpacked([requested[place] for place, _ in found], [value for _, value in found])
            rows[[place for place, _ in found]] = unpacked
        there = np.flatnonzero(rows)
        content[there] = self._copied(group, rows[there], content.shape[1])[1]
        return content

    def resident(self, cursor: Addresses, group: int, slots: int, limit: int) -> Addresses:
        """Return the addresses of at most `limit` resident rows from a cursor on, those in an older layout included.

        Looks at about `slots` slots.
        """
        found = np.zeros(limit, np.int64)
        n = gather_rows(
            self._memory.address, address(cursor), group, min(slots, 1 << 40), address(found), limit
        )
        return found[:n]

    def stored(self, start: bytes, stop: bytes, limit: int) -> tuple[bytes, Addresses]:
        """Read at most `limit` keys in [start, stop). Returns (the key from which to continue, the rows).

        Resident rows are left out. The rows are unpacked in scratch memory, and are valid until the next call.
        """
        items = self._store.scan_values(start, stop, limit)
        go_on = items[-1][0] + b"\0" if len(items) == limit else stop
        located = self._located([key for key, _ in items])
        groups = self._groups.layouts()
        requested = [
            (key, value)
            for (key, value), row in zip(items, located.tolist())
            if not row and value[HEADER_BYTES - 1] != TOMBSTONE_FORMAT and keys.row_group(key) in groups
        ]
        return go_on, self._unpacked([key for key, _ in requested], [value for _, value in requested])

    def digest(self, logical: Logical) -> int:
        """Return the sum, modulo 2^128, of the hashes of all rows that count. A hash covers group, entity, logical
        words.
        """
        total = 0
        for group in self._groups.layouts():
            name = group.to_bytes(2, "big")
            for ids, cells in self.rows(group):
                counts, words = logical(group, ids, cells)
                for entity, row in zip(ids[counts], words[counts]):
                    content = name + entity.tobytes() + row.tobytes()
                    hashed = hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()
                    total += int.from_bytes(hashed, "big")
        return total % (1 << (8 * _DIGEST_BYTES))

    def _located(self, requested: list[bytes]) -> Addresses:
        """Return the addresses of the resident rows of some keys; 0 for a key without one."""
        content = np.frombuffer(b"".join(requested) + b"\0", np.uint8)
        rows = np.zeros(len(requested), np.int64)
        locate_rows(self._memory.address, address(content), len(requested), address(rows))
        return rows

    def _unpacked(self, requested: list[bytes], values: list[bytes]) -> Addresses:
        """Unpack stored values of the keys in scratch memory, and return the rows' addresses."""
        n = len(requested)
        widest = max((layout.cells for layout in self._groups.layouts().values()), default=0)
        slot_words = ROW_HEAD_BYTES // 8 + widest
        if n * slot_words > self._scratch.size:
            self._scratch = np.zeros(n * slot_words, np.uint64)
        content = np.frombuffer(b"".join(requested) + b"\0", np.uint8)
        found = self._job.begin_scratch(n)
        head_rows(
            self._memory.address,
            address(content),
            n,
            address(self._scratch),
            8 * slot_words,
            address(found),
        )
        self._job.unpack(requested, values)
        return found

    def _copied(self, group: int, rows: Addresses, cells: int) -> tuple[Words, Words]:
        """Copy the ids and cells of rows out, in the newest layout.

        copy_rows stops at a row whose layout version has no map to the newest. The map is worked out, and it continues.
        """
        n, done = len(rows), 0
        ids, content = np.zeros((n, 2), np.uint64), np.zeros((n, cells), np.uint64)
        unknown = np.zeros(1, np.int64)
        at = address(ids), address(content), address(unknown)
        while done < n:
            done = int(copy_rows(self._memory.address, address(rows), done, n, cells, *at))
            if done < n:
                self._groups.work_out(group, int(unknown[0]))
        return ids, content
