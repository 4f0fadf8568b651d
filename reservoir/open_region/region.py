"""The open region: accepted rows that no chunk holds yet, in rings of arrival slots, and their order.

`Reservoir` has one. It does no I/O.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reservoir import layout as at
from reservoir.columns import ColumnData, ColumnKind, ColumnMaker, HotColumn, StoredColumn
from reservoir.errors import RowOrderError
from reservoir.frames import COLUMN_WORDS, FRAME_COLUMNS, FRAME_ORDER, FRAME_ROWS, FRAME_SEQ, FRAME_TIME
from reservoir.gather import (
    gather_entity_column,
    gather_payloads,
    gather_string_column,
    gather_word_column,
    gather_words,
)
from reservoir.native.jit import address
from reservoir.open_region.append import append_batch, release_slots, seal_slots, set_due_time
from reservoir.open_region.ring import OpenColumn, Ring, move_ring

_FIRST_ARENA_BYTES = 1 << 16
_REFUSED = {
    at.BEHIND_SEAL: "not after the last sealed row",
    at.OUT_OF_ORDER: "not after the record before it, or at minus infinity",
}


@dataclass(slots=True)
class OpenRows:
    """Some rows of the open region, by slot. Their slots stay untouched until `OpenRegion.release`.

    The rings are referenced, not copied. A ring that outgrows its arrays gets new arrays, so another thread may go on
    reading the old ones. `generation` tells whether the slots are still to be released.
    """

    ring: Ring
    slots: NDArray[np.uint32]
    generation: int
    columns: tuple[HotColumn, ...] = field(default=())

    def part(self, first: int, after: int) -> "OpenRows":
        """Rows `first` to `after` - 1 of these."""
        return replace(self, slots=self.slots[first:after])

    def span(self) -> tuple[int, ...]:
        """Return the number of rows, their first and last (time, seq), and their least and greatest seq."""
        time, seq, seqs = self.ring.time, self.ring.seq, self.words("seq")
        first, last = int(self.slots[0]), int(self.slots[-1])
        ends = (int(time[first]), int(seq[first]), int(time[last]), int(seq[last]))
        return len(self.slots), *ends, int(seqs.min()), int(seqs.max())

    def words(self, name: str) -> NDArray[Any]:
        """`time` or `seq` of the rows, int64[n]."""
        return gather_words(getattr(self.ring, name), self.slots)

    def ids(self) -> NDArray[np.uint64]:
        """Return the ids of the rows, uint64[n][2]: hi, lo."""
        flat = self.ring.ids.reshape(-1)
        pairs = np.empty((len(self.slots), 2), np.uint64)
        pairs[:, 0] = gather_words(flat, self.slots * np.uint32(2))
        pairs[:, 1] = gather_words(flat, self.slots * np.uint32(2) + np.uint32(1))
        return pairs

    def payloads(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return the raw records end to end, and their offsets int64[n + 1]."""
        return gather_payloads(self.ring.arena, self.ring.bytes_at, self.ring.bytes_length, self.slots)

    def stored(self, columns: Sequence[HotColumn]) -> list[StoredColumn]:
        """Return some hot columns of the rows, in the form of a sealed chunk."""
        return [self.column(column) for column in columns]

    def column(self, column: HotColumn) -> StoredColumn:
        """One hot column of the rows, in the form of a sealed chunk."""
        held = self.ring.columns[self.columns.index(column)]
        if column.kind is ColumnKind.ENTITY:
            return gather_entity_column(column, address(held.pairs), self.slots)
        if column.kind is ColumnKind.STRING:
            heaps = (address(self.ring.arena),)
            return gather_string_column(column, address(held.words), address(held.nulls), heaps, self.slots)
        return gather_word_column(column, address(held.words), address(held.nulls), self.slots)


class OpenRegion:
    """The open region of a reservoir. Owns the OPEN_ words of the context, and frame 0, whose words are `frame`."""

    def __init__(self, context: NDArray[np.int64], frame: NDArray[np.int64], chunk_events: int) -> None:
        self._context, self._frame = context, frame
        self._words = context.data
        self._address = address(context)
        self._chunk_events = chunk_events
        self._generation = 0
        self.columns: tuple[HotColumn, ...] = ()
        capacity = 1 << max(4, (4 * chunk_events - 1).bit_length())
        self._ring = Ring.empty(capacity, _FIRST_ARENA_BYTES, ())
        self._descriptors = np.zeros((1, COLUMN_WORDS), np.int64)
        context[at.OPEN_CHUNK_EVENTS] = chunk_events
        context[[at.OPEN_SEALED_TIME, at.OPEN_SEALED_SEQ, at.OPEN_LAST_SEQ]] = at.INT64_MIN
        context[[at.OPEN_MIN_INSERTED, at.OPEN_DUE_TIME]] = at.INT64_MAX
        self._hold_order(2 * capacity)
        self._hold_batch(256)
        self._publish()

    @property
    def rows(self) -> int:
        """How many rows are not yet sealed."""
        return self._words[at.OPEN_ORDER_END] - self._words[at.OPEN_ORDER_START]

    @property
    def arrivals(self) -> int:
        """How many rows were ever appended."""
        return int(self._words[at.OPEN_NEXT])

    @property
    def last_sealed(self) -> tuple[int, int]:
        """(time, seq) of the last sealed row."""
        return self._words[at.OPEN_SEALED_TIME], self._words[at.OPEN_SEALED_SEQ]

    @property
    def arena_bytes(self) -> int:
        """Bytes reserved for payloads and strings."""
        return len(self._ring.arena)

    def append(self, *, restoring: bool) -> None:
        """Append the batch that the IN_ words describe. See Reservoir.append."""
        self._words[at.OPEN_RESTORING] = restoring
        status = append_batch(self._address)
        while status == at.GROW:
            self._grow()
            status = append_batch(self._address)
        if status != at.DONE:
            raise RowOrderError(self._words[at.OPEN_FAULT_SEQ], _REFUSED[status])

    def peek_chunk(self) -> OpenRows:
        """Return the rows of the next chunk. There must be enough of them."""
        start = self._words[at.OPEN_ORDER_START]
        assert start + self._chunk_events <= self._words[at.OPEN_ORDER_END]
        return self._rows_at(start, start + self._chunk_events)

    def take_chunk(self, rows: OpenRows) -> None:
        """Remove the rows of `peek_chunk` from the open region. `release` must follow once they are copied."""
        self._words[at.OPEN_ORDER_START] += len(rows.slots)
        seal_slots(self._address, address(rows.slots), len(rows.slots))
        last = int(rows.slots[-1])
        self.sealed_up_to(int(rows.ring.time[last]), int(rows.ring.seq[last]))
        set_due_time(self._address)

    def sealed_up_to(self, time_ms: int, seq: int) -> None:
        """Set the (time, seq) of the last sealed row. Rows that are appended must lie behind it."""
        self._words[at.OPEN_SEALED_TIME], self._words[at.OPEN_SEALED_SEQ] = time_ms, seq

    def release(self, rows: OpenRows) -> None:
        """Free the slots of these sealed rows, so that they may be used again."""
        if rows.generation == self._generation:
            release_slots(self._address, address(rows.slots), len(rows.slots))

    def all_rows(self) -> OpenRows:
        """Every open row in (time, seq) order; valid until the next append."""
        return self._rows_at(self._words[at.OPEN_ORDER_START], self._words[at.OPEN_ORDER_END])

    def rows_since(self, arrivals: int) -> OpenRows:
        """Return the open rows that were appended after so many others, in the order of seq; valid until `release`."""
        numbers = np.arange(max(arrivals, self._words[at.OPEN_OLDEST]), self._words[at.OPEN_NEXT])
        slots = (numbers & (self._ring.capacity - 1)).astype(np.uint32)
        slots = slots[self._ring.state[slots] == at.SLOT_OPEN]
        return OpenRows(self._ring, slots, self._generation, self.columns)

    def first_time(self) -> int | None:
        """Return the time of the first open row in (time, seq) order; None if there is none."""
        return int(self._ring.time[self._order[self._words[at.OPEN_ORDER_START]]]) if self.rows else None

    def least_seq(self) -> int | None:
        """Least log position among the open rows; None if there are none."""
        if not self.rows:
            return None
        return int(self._ring.seq[self._words[at.OPEN_OLDEST] % self._ring.capacity])

    def set_columns(self, columns: Sequence[HotColumn], maker: ColumnMaker) -> None:
        """Set the hot columns. New ones are computed for the rows that the region has."""
        if tuple(columns) == self.columns:
            return
        rows = self.all_rows()
        known = {column: place for place, column in enumerate(self.columns)}
        places = [known.get(column, -1) for column in columns]
        missing = [column for column, place in zip(columns, places) if place < 0]
        made: dict[HotColumn, ColumnData] = {}
        if missing and len(rows.slots):
            values = maker.from_columns(missing, len(rows.slots), self.columns, rows.stored)
            if values is None:
                values = maker.from_records(*rows.payloads(), missing)
            made = dict(zip(missing, values))
        held, capacity = self._ring.columns, self._ring.capacity
        descriptors, arena = self._descriptors.tolist(), address(self._ring.arena)
        new = iter([OpenColumn.empty(column.kind, capacity) for column in missing])
        requested = tuple([held[place] if place >= 0 else next(new) for place in places])
        self._ring = self._ring.with_columns(requested)
        self.columns = tuple(columns)
        self._publish_columns(
            [
                descriptors[place] if place >= 0 else own.descriptor(arena)
                for place, own in zip(places, requested)
            ]
        )
        for column, data in made.items():
            words = _words_of(data)
            if column.kind is ColumnKind.STRING and words is not None:
                words = self._keep_strings(data, words)
            # The rings are looked up again: they may have grown for the strings, which gives the rows other slots.
            _put(self._ring.columns[self.columns.index(column)], self.all_rows().slots, data, words)

    def _keep_strings(self, data: ColumnData, refs: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Copy computed strings into the arena, as one run. Returns the references to them.

        They count as part of the newest row's batch. So the arena's head cannot pass them while a present row is open,
        and later rows start behind them.
        """
        lengths = (refs & np.uint64(0xFFFFFF)).astype(np.int64)
        size = int(lengths.sum())
        offset = self._reserve(size)
        made = np.zeros(len(refs), np.uint64)
        for k in np.flatnonzero(lengths):
            heap, begin = int(refs[k]) >> 62, (int(refs[k]) >> 24) & ((1 << 38) - 1)
            length = int(lengths[k])
            self._ring.arena[offset : offset + length] = data.heaps[heap][begin : begin + length]
            made[k] = offset << 24 | length
            offset += length
        return made

    def _reserve(self, size_bytes: int) -> int:
        """Reserve size_bytes without a break in the arena, which grows if needed. Returns their offset."""
        words = self._words
        while True:
            capacity, place = words[at.OPEN_ARENA_CAPACITY], words[at.OPEN_ARENA_NEXT]
            if place % capacity + size_bytes > capacity:
                place += capacity - place % capacity
            if place + size_bytes - words[at.OPEN_ARENA_HEAD] <= capacity:
                words[at.OPEN_ARENA_NEXT] = place + size_bytes
                return place % capacity
            words[at.OPEN_NEED_ROWS], words[at.OPEN_NEED_BYTES] = 0, size_bytes
            self._grow()

    def _rows_at(self, start: int, end: int) -> OpenRows:
        return OpenRows(self._ring, self._order[start:end].copy(), self._generation, self.columns)

    def _grow(self) -> None:
        """Replace the rings by larger ones with the room that an append lacked. They hold the open rows only."""
        words = self._words
        if words[at.IN_N] > words[at.OPEN_SLOT_CAPACITY]:
            self._hold_batch(2 * words[at.IN_N])
        rows, size = words[at.OPEN_NEED_ROWS], words[at.OPEN_NEED_BYTES]
        live = self._order[words[at.OPEN_ORDER_START] : words[at.OPEN_ORDER_END]].copy()
        head, behind = words[at.OPEN_HEAD], words[at.OPEN_NEXT]
        self._ring, head, arena_head = move_ring(
            self._ring,
            live,
            (head, behind),
            (words[at.OPEN_ARENA_HEAD], words[at.OPEN_ARENA_NEXT]),
            rows,
            size,
        )
        self._generation += 1
        words[at.OPEN_HEAD] = words[at.OPEN_OLDEST] = head
        words[at.OPEN_ARENA_HEAD] = arena_head
        if 4 * self._ring.capacity > len(self._order):
            self._hold_order(4 * self._ring.capacity)
        self._order[: len(live)] = live
        words[at.OPEN_ORDER_START], words[at.OPEN_ORDER_END] = 0, len(live)
        self._publish()

    def _hold_order(self, capacity: int) -> None:
        self._order = np.zeros(capacity, np.uint32)
        self._words[at.OPEN_ORDER] = address(self._order)
        self._words[at.OPEN_ORDER_CAPACITY] = capacity

    def _hold_batch(self, records: int) -> None:
        self.slots = np.zeros(records, np.int32)
        self._scratch = np.zeros(2 * records, np.uint32)
        self._words[at.OUT_SLOT], self._words[at.OPEN_SCRATCH] = address(self.slots), address(self._scratch)
        self._words[at.OPEN_SLOT_CAPACITY] = self._words[at.OPEN_SCRATCH_CAPACITY] = records

    def _publish(self) -> None:
        """Put the addresses of the rings into the context and into frame 0."""
        ring, context = self._ring, self._context
        context[at.OPEN_CAPACITY], context[at.OPEN_ARENA_CAPACITY] = ring.capacity, len(ring.arena)
        for word, array in (
            (at.OPEN_TIME, ring.time),
            (at.OPEN_SEQ, ring.seq),
            (at.OPEN_IDS, ring.ids),
            (at.OPEN_BYTES_AT, ring.bytes_at),
            (at.OPEN_BYTES_LENGTH, ring.bytes_length),
            (at.OPEN_BYTES_START, ring.bytes_start),
            (at.OPEN_BATCH_INDEX, ring.batch_index),
            (at.OPEN_STATE, ring.state),
            (at.OPEN_ARENA, ring.arena),
        ):
            context[word] = address(array)
        self._frame[FRAME_ROWS] = ring.capacity
        self._frame[FRAME_TIME], self._frame[FRAME_SEQ] = address(ring.time), address(ring.seq)
        self._frame[FRAME_ORDER] = address(self._order)
        arena = address(ring.arena)
        self._publish_columns([column.descriptor(arena) for column in ring.columns])

    def _publish_columns(self, descriptors: list[list[int]]) -> None:
        """Put the columns of the ring, by their descriptors, into the context and into frame 0."""
        self._descriptors = np.array(descriptors or [[0] * COLUMN_WORDS], np.int64)
        self._context[at.OPEN_COLUMN_COUNT] = len(descriptors)
        self._context[at.OPEN_COLUMNS] = self._frame[FRAME_COLUMNS] = address(self._descriptors)


def _put(
    column: OpenColumn, slots: NDArray[np.uint32], data: ColumnData, words: NDArray[np.uint64] | None
) -> None:
    """Write values of a column to slots. words: used in place of the data's words, if not None."""
    if column.kind is ColumnKind.ENTITY:
        assert data.hi is not None
        assert data.lo is not None
        column.pairs[slots, 0], column.pairs[slots, 1] = data.hi, data.lo
    else:
        assert words is not None
        column.words[slots] = words
        column.nulls[slots] = 0 if data.nulls is None else data.nulls


def _words_of(data: ColumnData) -> NDArray[np.uint64] | None:
    """Return the words of values, with zeros for nulls."""
    if data.words is None or data.nulls is None:
        return data.words
    return np.where(data.nulls == 0, data.words, np.uint64(0))
