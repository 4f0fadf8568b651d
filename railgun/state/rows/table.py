"""The entity table: one row for each (group, entity). Rows in use are in memory, and the store has all of them.

A task has one. `railgun/task/execution.py` has rows loaded before the interpreter needs them; checkpoints write the
rows that have changed.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from railgun.state.errors import BatchTooLargeError, LayoutError
from railgun.state.layouts import Layout
from railgun.state.resident import Image
from railgun.state.rows.context import CURSOR_SEGMENT, LOW32, ROWS_BATCH, ROWS_COUNT, ROWS_EPOCH, ROWS_STAMP
from railgun.state.rows.evict import gather_pending, gather_tombstones
from railgun.state.rows.eviction import RowEviction
from railgun.state.rows.groups import RowGroups
from railgun.state.rows.job import LoadJob
from railgun.state.rows.load import PLACED, TABLE_FULL
from railgun.state.rows.memory import RowMemory
from railgun.state.rows.reader import Logical, RowReader, Words
from railgun.state.rows.scan import OUTDATED, find_rows, mark_outdated, name_rows
from railgun.state.rows.upgrade import COPIES_FULL, NO_SLOT, RUNS_UNKNOWN
from railgun.state.store import Store
from reservoir.native.jit import address

# How many slots one call of `pending` looks at, which takes a quarter of a millisecond.
_PENDING_SLOTS = 16 * 1024
_UPGRADED_SLOTS = 4 * 1024
# How many bytes of copied images a brief step writes: about thirty narrow ones, which takes half a millisecond.
_DRAINED_BYTES = 4 * 1024
# The most that is written at once. If an event waits for room for a copy, a whole piece is written, because room comes
# only once a piece is empty. Writing it in parts would take longer.
_PRESSED_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class RowStats:
    """Counters of an entity table since it was made, and what it holds."""

    resident: int
    used_bytes: int
    loaded: int
    evicted: int
    written: int
    copied: int
    pending: int
    segments_moved: int


class EntityTable:
    """Holds rows by (group, hash of the entity). It is a Resident. One thread uses it; kernels get `context`.

    limit_bytes: memory for rows and their hash table. segment_bytes: a power of two, at least the widest row.
    A row in memory has `ROW_HEAD_WORDS` words of head, and then the cells of its group's layout, all zero at first.
    After a StoreError the table has lost what it tried to write, and must be opened again from the store.
    """

    def __init__(
        self, limit_bytes: int, store: Store, segment_bytes: int | None = None, *, salt: int
    ) -> None:
        self._memory = RowMemory(limit_bytes, segment_bytes, salt)
        self._store = store
        self._words = self._memory.context
        self._words[ROWS_EPOCH // 8] = store.committed_epoch + 1
        self._words[ROWS_STAMP // 8] = self._words[ROWS_BATCH // 8] = 1
        self._room = RowEviction(self._memory, store)
        self._groups = RowGroups(self._room, store)
        self._job = LoadJob(self._memory, self._groups, store)
        self.reader = RowReader(self._memory, self._groups, store)
        self._pending = np.zeros(2, np.int64)
        self._pending_address = address(self._pending)
        self._pending[CURSOR_SEGMENT // 8] = len(self._memory.segments)
        self._loaded = 0
        self._upgrading = np.zeros(2, np.int64)
        self._to_upgrade = 0

    @property
    def context(self) -> int:
        """Address of the context, for the kernels. It does not change."""
        return self._memory.address

    @property
    def epoch(self) -> int:
        """The current epoch."""
        return int(self._words[ROWS_EPOCH // 8])

    def stats(self) -> RowStats:
        """Counts and sizes."""
        room = self._room.stats
        return RowStats(
            resident=int(self._words[ROWS_COUNT // 8]),
            used_bytes=self._memory.used_bytes(),
            loaded=self._loaded,
            evicted=room.evicted,
            written=room.written,
            copied=room.copied,
            pending=room.pending,
            segments_moved=room.segments_moved,
        )

    def touch_ahead(self) -> bool:
        """Prepare a piece of the memory that rows will soon need. False if there is nothing to do."""
        return self._memory.touch_ahead()

    @property
    def has_backlog(self) -> bool:
        """Whether so many copied images wait to be written that writing all of them would take long."""
        return self._memory.copies.used_bytes > _PRESSED_BYTES

    def flush_some_copies(self, times: int) -> bool:
        """Write some of the copied images, `times` as many as in the smallest step.

        Returns True if none is left. Deleting rows then need not write any first.
        """
        self._room.drain_some(times * _DRAINED_BYTES)
        return self._memory.copies.is_empty

    def flush_copies(self) -> None:
        """Make room among the copied images, after a kernel returned ROWS_DRAIN."""
        if not self._memory.copies.make_room():
            self._room.drain(_PRESSED_BYTES)

    # --- a batch ---------------------------------------------------------------------------------

    def next_stamp(self) -> None:
        """Begin a batch. Rows found or loaded from now on stay in memory; rows of earlier batches may be evicted."""
        words = self._words
        words[ROWS_STAMP // 8] = (int(words[ROWS_STAMP // 8]) + 1) & int(LOW32)
        words[ROWS_BATCH // 8] += 1

    def load(self, missing: npt.NDArray[np.uint64], n: int) -> None:
        """Make rows resident and stamp them. missing: uint64[>= n, 3] of (group, hi, lo), C-contiguous.

        Entities may be repeated, or resident already. Rows that are not of the current stamp may be evicted for it.
        Raises BatchTooLargeError if the rows of the batch do not fit, LayoutError for an unknown group, and StoreError.
        The rows are then not resident, unless they were before.
        """
        job = self._job
        job.begin(missing, n)
        try:
            while (status := job.place()) != PLACED:
                group = job.group
                if status == TABLE_FULL:
                    self._room.grow_table(group)
                elif status == NO_SLOT:
                    self._room.make_room(job.slot_class, job.left, group)
                elif status == RUNS_UNKNOWN:
                    self._groups.work_out(group, job.outdated_version)
                elif status == COPIES_FULL:
                    self.flush_copies()
                else:
                    raise LayoutError(f"rows of group {group} are wanted, which has no layout")
            job.fill()
        except BaseException:
            job.undo_load()
            raise
        self._loaded += job.count

    def delete(self, rows: npt.NDArray[np.int64]) -> None:
        """Delete resident rows, by address. Pages to which their cells refer must have been freed."""
        done = 0
        while done < len(rows):
            done = int(gather_tombstones(self.context, address(rows), done, len(rows)))
            self._room.drain()
            self._room.flush()

    def find(self, entities: Words) -> npt.NDArray[np.int64]:
        """Return the addresses of the rows of uint64[n, 3] (group, hi, lo); 0 for a row that is not resident, or
        outdated.
        """
        found = np.zeros(len(entities), np.int64)
        find_rows(self.context, address(entities), len(entities), address(found))
        return found

    def outdated(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether each resident row, by address, has an older layout than its group's newest. `load` upgrades those."""
        found = np.zeros(len(rows), np.bool_)
        mark_outdated(self.context, address(rows), len(rows), address(found))
        return found

    def entities(self, rows: npt.NDArray[np.int64]) -> Words:
        """uint64[n, 3] of (group, hi, lo) of rows, by address."""
        found = np.zeros((len(rows), 3), np.uint64)
        name_rows(self.context, address(rows), len(rows), address(found))
        return found

    def digest_rows(self, logical: Logical) -> int:
        """Return a digest of all rows (128 bits). It depends neither on where the rows are nor on their order.

        logical(group, hashes, cells) tells which rows count (empty ones must not) and their logical words, in which
        page numbers are replaced by what the pages hold.
        """
        return self.reader.digest(logical)

    @property
    def segment_count(self) -> int:
        """How many segments a cursor over resident rows passes."""
        return len(self._memory.segments)

    # --- layouts ---------------------------------------------------------------------------------

    def layouts(self) -> dict[int, Layout]:
        """Return the layout in force of each group. After a recovery, these are the layouts of the checkpoint."""
        return self._groups.layouts()

    def set_layout(
        self, group: int, version: int, cells: int, mapping: Sequence[tuple[int, int, int]] = ()
    ) -> None:
        """Make a group (below 65535), or give its rows another layout. To be called between batches only.

        cells: words of a row behind its head. version: must be above the one in force. mapping: (offset in the layout
        in force, offset in this one, words), in words from the first cell; all other cells are zero.
        Rows are upgraded when they are next loaded, and no remembered address is valid any more. The change belongs to
        the current epoch, like any change of a row. Raises LayoutError.
        """
        self.next_stamp()
        self._groups.set_layout(group, version, cells, mapping)
        # One round begins from the present segment. If layouts change in quick succession, each round begins where
        # the one before has stopped.
        self._to_upgrade = self.segment_count + 1

    def upgrade(self, rows: int) -> bool:
        """Upgrade some outdated rows to the newest layout. To be called between batches only.

        Returns False if there are none, or if no room is free: these rows must not drive out rows that are in use.
        Without this call, rows are upgraded when they are loaded; until then the slots of both layouts take memory.
        Raises what `load` raises, except for a lack of room.
        """
        if self._to_upgrade <= 0 or not self._memory.unowned_segments().size:
            return False
        started_at = int(self._upgrading[CURSOR_SEGMENT // 8])
        found = self.reader.resident(self._upgrading, OUTDATED, _UPGRADED_SLOTS, rows)
        come_to = int(self._upgrading[CURSOR_SEGMENT // 8])
        self._to_upgrade -= come_to - started_at
        if come_to == self.segment_count:
            self._upgrading[:] = 0
        if len(found):
            missing = self.entities(found)
            self.next_stamp()
            with suppress(BatchTooLargeError):
                self.load(missing, len(missing))
        return True

    def dropped_groups(self) -> set[int]:
        """Return the dropped groups whose numbers may not be used again yet."""
        return self._groups.dropped()

    def drop_group(self, group: int) -> None:
        """Delete a group and its rows, from the current epoch on. To be called between batches only.

        Its rows leave memory when `let_go` is called, or when the epoch ends. The number may be used again once a later
        checkpoint is durable. Raises LayoutError.
        """
        self._groups.drop(group)

    def let_go(self, slots: int) -> bool:
        """Take rows of dropped groups out of memory, looking at so many slots. False if there are none."""
        return self._groups.let_go(slots)

    # --- Resident --------------------------------------------------------------------------------

    def set_epoch(self, epoch: int) -> None:
        while self._groups.let_go():
            pass
        self._words[ROWS_EPOCH // 8] = epoch
        self._pending[:] = 0

    def pending(self, old_epoch: int, limit_bytes: int) -> list[Image]:
        """Write the images here, so that they are also kept as undo entries of the next epoch. Returns no image."""
        gather_pending(self.context, self._pending_address, old_epoch, limit_bytes, _PENDING_SLOTS)
        self._room.write_pending()
        return []

    def drain(self, limit_bytes: int | None = None) -> None:
        self._room.drain(limit_bytes)

    def exhausted(self) -> bool:
        is_scanned = int(self._pending[CURSOR_SEGMENT // 8]) >= len(self._memory.segments)
        return is_scanned and self._memory.copies.is_empty

    def committed(self, epoch: int) -> None:
        self._groups.committed(epoch)
        self._memory.copies.shrink()
