"""Kernels that append a batch's rows to the open region, and free their slots after they were sealed.

`OpenRegion` calls them.
"""

from typing import Any

import numpy as np

from reservoir.columns import ColumnKind
from reservoir.frames import (
    COLUMN_KIND,
    COLUMN_NULLS,
    COLUMN_PAIRS,
    COLUMN_ROW_CACHE,
    COLUMN_WORDS,
)
from reservoir.frames import COLUMN_WORDS_AT as WORDS_AT
from reservoir.layout import (
    BEHIND_SEAL,
    DONE,
    GROW,
    IN_ACCEPTED,
    IN_COLUMNS,
    IN_FIRST_SEQ,
    IN_HEAP0,
    IN_ID_HI,
    IN_ID_LO,
    IN_N,
    IN_PAYLOAD,
    IN_PAYLOAD_OFFSETS,
    IN_SEQ,
    IN_TIME,
    INT64_MAX,
    INT64_MIN,
    OPEN_ARENA,
    OPEN_ARENA_CAPACITY,
    OPEN_ARENA_HEAD,
    OPEN_ARENA_NEXT,
    OPEN_BATCH_FIRST,
    OPEN_BATCH_INDEX,
    OPEN_BYTES_AT,
    OPEN_BYTES_LENGTH,
    OPEN_BYTES_START,
    OPEN_CAPACITY,
    OPEN_CHUNK_EVENTS,
    OPEN_COLUMN_COUNT,
    OPEN_COLUMNS,
    OPEN_DUE_TIME,
    OPEN_FAULT_SEQ,
    OPEN_HEAD,
    OPEN_IDS,
    OPEN_LAST_SEQ,
    OPEN_MIN_INSERTED,
    OPEN_NEED_BYTES,
    OPEN_NEED_ROWS,
    OPEN_NEXT,
    OPEN_OLDEST,
    OPEN_ORDER,
    OPEN_ORDER_CAPACITY,
    OPEN_ORDER_END,
    OPEN_ORDER_START,
    OPEN_RESTORING,
    OPEN_SCRATCH,
    OPEN_SCRATCH_CAPACITY,
    OPEN_SEALED_SEQ,
    OPEN_SEALED_TIME,
    OPEN_SEQ,
    OPEN_SLOT_CAPACITY,
    OPEN_STATE,
    OPEN_TIME,
    OUT_OF_ORDER,
    OUT_SLOT,
    SLOT_FREE,
    SLOT_OPEN,
    SLOT_SEALED,
)
from reservoir.native.jit import (
    copy_bytes,
    jit,
    ld8,
    ld32,
    ld64,
    ldi64,
    move_bytes,
    st8,
    st32,
    st64,
    sti32,
    sti64,
)
from reservoir.open_region.ring import merge_slots, sort_slots

_STRING = int(ColumnKind.STRING)
_ENTITY = int(ColumnKind.ENTITY)
_LENGTH = np.uint64(0xFFFFFF)
_OFFSET = np.uint64((1 << 38) - 1)
_u = np.uint64


@jit
def _word(ctx: int, index: Any) -> Any:
    return ldi64(ctx + index * 8)


@jit
def _seq(ctx: int, i: int) -> Any:
    """Log position of record i of the batch."""
    seqs = _word(ctx, IN_SEQ)
    if seqs == 0:
        return _word(ctx, IN_FIRST_SEQ) + i
    return ldi64(seqs + i * 8)


@jit
def _ref_address(ctx: int, ref: Any) -> Any:
    """Address of the bytes that an incoming STRING reference names."""
    heap = _word(ctx, IN_HEAP0 + np.int64(ref >> _u(62)))
    return heap + np.int64((ref >> _u(24)) & _OFFSET)


@jit
def _inside_payload(ctx: int, i: int, where: Any, length: Any) -> Any:
    """Whether a string lies inside the raw record of its own row. Then it need not be stored twice."""
    payload, offsets = _word(ctx, IN_PAYLOAD), _word(ctx, IN_PAYLOAD_OFFSETS)
    return where >= payload + ldi64(offsets + i * 8) and where + length <= payload + ldi64(
        offsets + i * 8 + 8
    )


@jit
def _take(ctx: int, n: int) -> Any:
    """Write to OUT_SLOT each record's rank among the appended ones, or -1. Returns (status, appended rows)."""
    accepted, slots = _word(ctx, IN_ACCEPTED), _word(ctx, OUT_SLOT)
    times, restoring = _word(ctx, IN_TIME), _word(ctx, OPEN_RESTORING)
    sealed_time, sealed_seq = _word(ctx, OPEN_SEALED_TIME), _word(ctx, OPEN_SEALED_SEQ)
    last_seq = _word(ctx, OPEN_LAST_SEQ)
    rows = 0
    for i in range(n):
        if accepted != 0 and ld8(accepted + i) == 0:
            sti32(slots + i * 4, np.int32(-1))
            continue
        time, seq = ldi64(times + i * 8), _seq(ctx, i)
        if time < sealed_time or (time == sealed_time and seq <= sealed_seq):
            if restoring != 0:
                sti32(slots + i * 4, np.int32(-1))
                continue
            sti64(ctx + OPEN_FAULT_SEQ * 8, seq)
            return BEHIND_SEAL, 0
        if seq <= last_seq or time == INT64_MIN:
            sti64(ctx + OPEN_FAULT_SEQ * 8, seq)
            return OUT_OF_ORDER, 0
        last_seq = seq
        sti32(slots + i * 4, np.int32(rows))
        rows += 1
    return DONE, rows


@jit
def _bytes_needed(ctx: int, n: int) -> Any:
    """How many bytes the accepted payloads and the strings outside of them need."""
    slots, offsets = _word(ctx, OUT_SLOT), _word(ctx, IN_PAYLOAD_OFFSETS)
    total: Any = 0
    for i in range(n):
        if ld32(slots + i * 4) != np.uint32(0xFFFFFFFF):
            total += ldi64(offsets + i * 8 + 8) - ldi64(offsets + i * 8)
    for c in range(_word(ctx, OPEN_COLUMN_COUNT)):
        if ldi64(_word(ctx, OPEN_COLUMNS) + (c * COLUMN_WORDS + COLUMN_KIND) * 8) != _STRING:
            continue
        refs = ldi64(_word(ctx, IN_COLUMNS) + c * 16)
        for i in range(n):
            ref = ld64(refs + i * 8)
            length = np.int64(ref & _LENGTH)
            if length != 0 and ld32(slots + i * 4) != np.uint32(0xFFFFFFFF):
                if not _inside_payload(ctx, i, _ref_address(ctx, ref), length):
                    total += length
    return total


@jit
def _arena_place(ctx: int, size_bytes: int) -> Any:
    """Position where size_bytes fit without a break in the arena, which is a ring; -1 if there is no room."""
    capacity, place = _word(ctx, OPEN_ARENA_CAPACITY), _word(ctx, OPEN_ARENA_NEXT)
    if (place & (capacity - 1)) + size_bytes > capacity:
        place = (place | (capacity - 1)) + 1
    if place + size_bytes - _word(ctx, OPEN_ARENA_HEAD) > capacity:
        return -1
    return place


@jit
def _order_room(ctx: int, rows: int) -> Any:
    """Make room for `rows` more entries of the order by moving the live ones to the front. False if they do not fit."""
    start, end = _word(ctx, OPEN_ORDER_START), _word(ctx, OPEN_ORDER_END)
    capacity, order = _word(ctx, OPEN_ORDER_CAPACITY), _word(ctx, OPEN_ORDER)
    if end + rows <= capacity:
        return True
    if end - start + rows > capacity // 2:
        return False
    move_bytes(order, order + start * 4, (end - start) * 4)
    sti64(ctx + OPEN_ORDER_START * 8, 0)
    sti64(ctx + OPEN_ORDER_END * 8, end - start)
    return True


@jit
def _copy_head(ctx: int, n: int, first: int, place: int) -> Any:
    """Copy time, seq, id and payload of the appended rows. Returns the arena position behind the payloads."""
    mask, arena_mask = _word(ctx, OPEN_CAPACITY) - 1, _word(ctx, OPEN_ARENA_CAPACITY) - 1
    slots, offsets, payload = _word(ctx, OUT_SLOT), _word(ctx, IN_PAYLOAD_OFFSETS), _word(ctx, IN_PAYLOAD)
    arena, start = _word(ctx, OPEN_ARENA), place
    for i in range(n):
        rank = np.int64(np.int32(ld32(slots + i * 4)))
        if rank < 0:
            continue
        slot = (first + rank) & mask
        sti32(slots + i * 4, np.int32(slot))
        sti64(_word(ctx, OPEN_TIME) + slot * 8, ldi64(_word(ctx, IN_TIME) + i * 8))
        sti64(_word(ctx, OPEN_SEQ) + slot * 8, _seq(ctx, i))
        st64(_word(ctx, OPEN_IDS) + slot * 16, ld64(_word(ctx, IN_ID_HI) + i * 8))
        st64(_word(ctx, OPEN_IDS) + slot * 16 + 8, ld64(_word(ctx, IN_ID_LO) + i * 8))
        size = ldi64(offsets + i * 8 + 8) - ldi64(offsets + i * 8)
        copy_bytes(arena + (place & arena_mask), payload + ldi64(offsets + i * 8), size)
        sti64(_word(ctx, OPEN_BYTES_AT) + slot * 8, place)
        sti64(_word(ctx, OPEN_BYTES_LENGTH) + slot * 8, size)
        sti64(_word(ctx, OPEN_BYTES_START) + slot * 8, start)
        sti32(_word(ctx, OPEN_BATCH_INDEX) + slot * 4, np.int32(i))
        st8(_word(ctx, OPEN_STATE) + slot, np.uint8(SLOT_OPEN))
        place += size
    return place


@jit
def _copy_words(slots: int, n: int, words: int, nulls: int, descriptor: int) -> None:
    """Copy a WORD column: words and nulls. The word of a null becomes 0."""
    to_words, to_nulls = ldi64(descriptor + WORDS_AT * 8), ldi64(descriptor + COLUMN_NULLS * 8)
    for i in range(n):
        slot = np.int64(np.int32(ld32(slots + i * 4)))
        if slot >= 0:
            null = np.uint8(0) if nulls == 0 else ld8(nulls + i)
            st64(to_words + slot * 8, _u(0) if null != 0 else ld64(words + i * 8))
            st8(to_nulls + slot, null)


@jit
def _copy_entities(slots: int, n: int, hi: int, lo: int, descriptor: int) -> None:
    """Copy an ENTITY column: its pairs. Its row cache is cleared."""
    pairs, cache = ldi64(descriptor + COLUMN_PAIRS * 8), ldi64(descriptor + COLUMN_ROW_CACHE * 8)
    for i in range(n):
        slot = np.int64(np.int32(ld32(slots + i * 4)))
        if slot >= 0:
            st64(pairs + slot * 16, ld64(hi + i * 8))
            st64(pairs + slot * 16 + 8, ld64(lo + i * 8))
            sti64(cache + slot * 16, 0)
            sti64(cache + slot * 16 + 8, 0)


@jit
def _copy_strings(ctx: int, n: int, refs: int, nulls: int, descriptor: int, place: Any) -> Any:
    """Copy a STRING column, as references into the arena. Returns the arena position behind the copied strings."""
    to_refs, to_nulls = ldi64(descriptor + WORDS_AT * 8), ldi64(descriptor + COLUMN_NULLS * 8)
    arena, mask, slots = _word(ctx, OPEN_ARENA), _word(ctx, OPEN_ARENA_CAPACITY) - 1, _word(ctx, OUT_SLOT)
    for i in range(n):
        slot = np.int64(np.int32(ld32(slots + i * 4)))
        if slot < 0:
            continue
        null = np.uint8(0) if nulls == 0 else ld8(nulls + i)
        ref = _u(0) if null != 0 else ld64(refs + i * 8)
        length, offset = np.int64(ref & _LENGTH), np.int64(0)
        if length != 0:
            where = _ref_address(ctx, ref)
            if _inside_payload(ctx, i, where, length):
                begin = _word(ctx, IN_PAYLOAD) + ldi64(_word(ctx, IN_PAYLOAD_OFFSETS) + i * 8)
                offset = (ldi64(_word(ctx, OPEN_BYTES_AT) + slot * 8) & mask) + where - begin
            else:
                offset = place & mask
                copy_bytes(arena + offset, where, length)
                place += length
        st64(to_refs + slot * 8, (_u(offset) << _u(24)) | _u(length))
        st8(to_nulls + slot, null)
    return place


@jit
def _copy_columns(ctx: int, n: int, place: int) -> Any:
    """Copy every hot column. Returns the arena position behind the strings."""
    slots = _word(ctx, OUT_SLOT)
    for c in range(_word(ctx, OPEN_COLUMN_COUNT)):
        descriptor = _word(ctx, OPEN_COLUMNS) + c * COLUMN_WORDS * 8
        first, second = ldi64(_word(ctx, IN_COLUMNS) + c * 16), ldi64(_word(ctx, IN_COLUMNS) + c * 16 + 8)
        kind = ldi64(descriptor + COLUMN_KIND * 8)
        if kind == _ENTITY:
            _copy_entities(slots, n, first, second, descriptor)
        elif kind == _STRING:
            place = _copy_strings(ctx, n, first, second, descriptor, place)
        else:
            _copy_words(slots, n, first, second, descriptor)
    return place


@jit
def _sort_in(ctx: int, first: int, rows: int) -> None:
    """Insert the new slots, which are in the order of arrival, into OPEN_ORDER."""
    mask, times, order = _word(ctx, OPEN_CAPACITY) - 1, _word(ctx, OPEN_TIME), _word(ctx, OPEN_ORDER)
    start, end = _word(ctx, OPEN_ORDER_START), _word(ctx, OPEN_ORDER_END)
    slots = order + end * 4
    latest = (
        ldi64(times + ld32(order + end * 4 - 4) * 8) if end > start else ldi64(times + (first & mask) * 8)
    )
    last, least = latest, ldi64(times + (first & mask) * 8)
    in_order = True
    for k in range(rows):
        slot = (first + k) & mask
        time = ldi64(times + slot * 8)
        st32(slots + k * 4, np.uint32(slot))
        in_order = in_order and time >= last
        last, least = time, min(least, time)
    sti64(ctx + OPEN_ORDER_END * 8, end + rows)
    if in_order:
        return
    scratch = _word(ctx, OPEN_SCRATCH)
    copy_bytes(scratch, slots, rows * 4)
    ordered = sort_slots(times, scratch, scratch + _word(ctx, OPEN_SCRATCH_CAPACITY) * 4, rows)
    merge_slots(times, order, start, end, ordered, rows)
    if end > start and least < latest:
        sti64(ctx + OPEN_MIN_INSERTED * 8, min(least, _word(ctx, OPEN_MIN_INSERTED)))


@jit
def set_due_time(ctx: int) -> None:
    """Set OPEN_DUE_TIME: the time of the row that completes the next chunk."""
    place = _word(ctx, OPEN_ORDER_START) + _word(ctx, OPEN_CHUNK_EVENTS) - 1
    due = np.int64(INT64_MAX)
    if place < _word(ctx, OPEN_ORDER_END):
        due = ldi64(_word(ctx, OPEN_TIME) + ld32(_word(ctx, OPEN_ORDER) + place * 4) * 8)
    sti64(ctx + OPEN_DUE_TIME * 8, due)


@jit
def append_batch(ctx: int) -> Any:
    """Append the accepted records of the batch to the open region.

    Returns DONE; GROW, with OPEN_NEED_ROWS and OPEN_NEED_BYTES set to the room that is needed; or BEHIND_SEAL or
    OUT_OF_ORDER, with OPEN_FAULT_SEQ set to the record that cannot be placed. Only DONE changes the rows.
    """
    n, first = _word(ctx, IN_N), _word(ctx, OPEN_NEXT)
    sti64(ctx + OPEN_NEED_ROWS * 8, n)
    sti64(ctx + OPEN_NEED_BYTES * 8, 0)
    if n > _word(ctx, OPEN_SLOT_CAPACITY):
        return GROW
    status, rows = _take(ctx, n)
    if status != DONE:
        return status
    sti64(ctx + OPEN_BATCH_FIRST * 8, first)
    if rows == 0:
        return DONE
    need = _bytes_needed(ctx, n)
    sti64(ctx + OPEN_NEED_ROWS * 8, rows)
    sti64(ctx + OPEN_NEED_BYTES * 8, need)
    place = _arena_place(ctx, need)
    if first + rows - _word(ctx, OPEN_HEAD) > _word(ctx, OPEN_CAPACITY) or place < 0:
        return GROW
    if not _order_room(ctx, rows):
        return GROW
    place = _copy_head(ctx, n, first, place)
    sti64(ctx + OPEN_ARENA_NEXT * 8, _copy_columns(ctx, n, place))
    sti64(ctx + OPEN_NEXT * 8, first + rows)
    sti64(
        ctx + OPEN_LAST_SEQ * 8,
        ldi64(_word(ctx, OPEN_SEQ) + ((first + rows - 1) & (_word(ctx, OPEN_CAPACITY) - 1)) * 8),
    )
    _sort_in(ctx, first, rows)
    set_due_time(ctx)
    return DONE


@jit
def seal_slots(ctx: int, slots: int, n: int) -> None:
    """Mark rows as sealed in a chunk, and move OPEN_OLDEST behind sealed rows. Their slots may still be read."""
    mask, state = _word(ctx, OPEN_CAPACITY) - 1, _word(ctx, OPEN_STATE)
    for k in range(n):
        st8(state + np.int64(ld32(slots + k * 4)), np.uint8(SLOT_SEALED))
    oldest, behind = _word(ctx, OPEN_OLDEST), _word(ctx, OPEN_NEXT)
    while oldest < behind and ld8(state + (oldest & mask)) != SLOT_OPEN:
        oldest += 1
    sti64(ctx + OPEN_OLDEST * 8, oldest)


@jit
def release_slots(ctx: int, slots: int, n: int) -> None:
    """Free sealed slots that nobody reads any more, and move the heads of the rings behind free slots."""
    mask, state = _word(ctx, OPEN_CAPACITY) - 1, _word(ctx, OPEN_STATE)
    for k in range(n):
        st8(state + np.int64(ld32(slots + k * 4)), np.uint8(SLOT_FREE))
    head, behind = _word(ctx, OPEN_HEAD), _word(ctx, OPEN_NEXT)
    while head < behind and ld8(state + (head & mask)) == SLOT_FREE:
        head += 1
    sti64(ctx + OPEN_HEAD * 8, head)
    if head == behind:
        sti64(ctx + OPEN_ARENA_HEAD * 8, _word(ctx, OPEN_ARENA_NEXT))
    else:
        sti64(ctx + OPEN_ARENA_HEAD * 8, ldi64(_word(ctx, OPEN_BYTES_START) + (head & mask) * 8))
