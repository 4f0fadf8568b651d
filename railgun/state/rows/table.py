"""The entity table: one row per (group, entity), those in use in memory, all of them in the store."""

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

# Slots looked at in one call of `pending`: a quarter of a millisecond's worth.
_PENDING_SLOTS = 16 * 1024
_UPGRADED_SLOTS = 4 * 1024
# Of copies, in a brief step: thirty or so narrow ones, half a millisecond's worth.
_DRAINED_BYTES = 4 * 1024
# What may be written at once; and what is where an event waits for room for its copy: a piece, since there is room once
# it is empty. In parts that takes longer, and the event waits for all of them.
_PRESSED_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class RowStats:
    """What the table did since it was made, and what it holds."""

    resident: int
    used_bytes: int
    loaded: int
    evicted: int
    written: int
    copied: int
    pending: int
    segments_moved: int


class EntityTable:
    """Rows by (group, hash), a Resident. One thread; kernels get `context`.

    limit_bytes: memory for rows and their hash table. segment_bytes: a power of two, at least the widest row.
    A row in memory: `ROW_HEAD_WORDS` words of head, then the cells of its group's layout, all zero at first.
    After a StoreError the table has lost what it tried to write: it must be opened anew from the store.
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
        """Make memory ready that rows will soon need, a piece at a time. False: there is nothing to do."""
        return self._memory.touch_ahead()

    @property
    def has_backlog(self) -> bool:
        """Do so many copied images wait to be written that whoever has to write all of them would be held up?"""
        return self._memory.copies.used_bytes > _PRESSED_BYTES

    def flush_some_copies(self, times: int) -> bool:
        """Write some of the copied images, so many times as few as can be. True: there is none left, so that deleting
        rows has to write none first.
        """
        self._room.drain_some(times * _DRAINED_BYTES)
        return self._memory.copies.is_empty

    def flush_copies(self) -> None:
        """Make room among the copied images, where a kernel said ROWS_DRAIN."""
        if not self._memory.copies.make_room():
            self._room.drain(_PRESSED_BYTES)

    # --- a batch ---------------------------------------------------------------------------------

    def next_stamp(self) -> None:
        """Begin a batch: rows found or loaded from now on stay, those of before may go."""
        words = self._words
        words[ROWS_STAMP // 8] = (int(words[ROWS_STAMP // 8]) + 1) & int(LOW32)
        words[ROWS_BATCH // 8] += 1

    def load(self, missing: npt.NDArray[np.uint64], n: int) -> None:
        """Make rows resident and stamp them. missing: uint64[>= n, 3] of (group, hi, lo), C-contiguous.

        Repeated and resident entities are welcome. Rows not of the current stamp may be evicted for it.
        Raises BatchTooLargeError when the rows of the batch do not fit, LayoutError for an unknown group,
        StoreError; the rows named are not resident then, unless they were before.
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
        """Delete resident rows, by address. What their cells refer to (pages) must be gone already."""
        done = 0
        while done < len(rows):
            done = int(gather_tombstones(self.context, address(rows), done, len(rows)))
            self._room.drain()
            self._room.flush()

    def find(self, entities: Words) -> npt.NDArray[np.int64]:
        """Addresses of the rows of uint64[n, 3] (group, hi, lo): 0 where one is not resident, or outdated."""
        found = np.zeros(len(entities), np.int64)
        find_rows(self.context, address(entities), len(entities), address(found))
        return found

    def outdated(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which resident rows, by address, have an older layout than their group's newest: `load` upgrades them."""
        found = np.zeros(len(rows), np.bool_)
        mark_outdated(self.context, address(rows), len(rows), address(found))
        return found

    def entities(self, rows: npt.NDArray[np.int64]) -> Words:
        """uint64[n, 3] of (group, hi, lo) of rows, by address."""
        found = np.zeros((len(rows), 3), np.uint64)
        name_rows(self.context, address(rows), len(rows), address(found))
        return found

    def digest_rows(self, logical: Logical) -> int:
        """A number that is the same for the same rows, wherever they are and in whatever order they came.

        logical(group, hashes, cells) says which rows count (empty ones must not) and what words of theirs:
        it replaces page numbers by what the pages hold. 128 bits.
        """
        return self.reader.digest(logical)

    @property
    def segment_count(self) -> int:
        """Segments that a cursor over resident rows passes."""
        return len(self._memory.segments)

    # --- layouts ---------------------------------------------------------------------------------

    def layouts(self) -> dict[int, Layout]:
        """The layout in force of each group: after recovery those of the checkpoint."""
        return self._groups.layouts()

    def set_layout(
        self, group: int, version: int, cells: int, mapping: Sequence[tuple[int, int, int]] = ()
    ) -> None:
        """Begin a group (below 65535), or give its rows another layout. Between batches only.

        cells: words of a row behind its head. version: above the one in force. mapping: (offset in the layout
        in force, offset in this one, words), in words from the first cell; all other cells are zero.
        Rows follow when they are next loaded: no address holds any more. It belongs to the current epoch, as any
        change of a row.  Raises LayoutError.
        """
        self.next_stamp()
        self._groups.set_layout(group, version, cells, mapping)
        # Once round from where it is: of layouts in quick succession each begins where the one before has come to.
        self._to_upgrade = self.segment_count + 1

    def upgrade(self, rows: int) -> bool:
        """Give some rows that are still in an older layout the newest. False: there are none, or no room is free: rows
        that nobody wants now would drive out those that are in use.

        Between batches only. Whoever does not call it finds rows upgraded when they are loaded; until then they take
        the room of both layouts.  Raises what `load` raises, but for a lack of room.
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
        """Dropped groups whose numbers are not free yet."""
        return self._groups.dropped()

    def drop_group(self, group: int) -> None:
        """Forget a group and its rows, from the current epoch on. Between batches only.

        Its rows leave memory as `let_go` is called, or when the epoch ends.
        The number is free again once a checkpoint after it is durable. Raises LayoutError.
        """
        self._groups.drop(group)

    def let_go(self, slots: int) -> bool:
        """Take rows of dropped groups out of memory, looking at so many slots. False: there are none."""
        return self._groups.let_go(slots)

    # --- Resident --------------------------------------------------------------------------------

    def set_epoch(self, epoch: int) -> None:
        while self._groups.let_go():
            pass
        self._words[ROWS_EPOCH // 8] = epoch
        self._pending[:] = 0

    def pending(self, old_epoch: int, limit_bytes: int) -> list[Image]:
        """Writes the images itself, to keep them for the next epoch at once; returns none."""
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
