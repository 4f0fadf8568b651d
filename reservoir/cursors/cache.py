"""The cache of decoded chunks, bounded in bytes. They are decoded ahead of the cursors, and evicted by their next use.

`Reservoir` has one; lanes of the executor read and decode. A decoded chunk is a *frame* (reservoir.frames). A *column
set* is a numbered list of the hot columns that the frames of some cursors have.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reservoir import layout as at
from reservoir.columns import HotColumn
from reservoir.cursors.held_frame import Ahead, HeldFrame, held_frame
from reservoir.distinct import distinct
from reservoir.errors import CapacityError
from reservoir.executor import Executor
from reservoir.frames import (
    FRAME_CHUNK,
    FRAME_COLUMNS,
    FRAME_ROWS,
    FRAME_SEQ,
    FRAME_SET,
    FRAME_STAMP,
    FRAME_TIME,
    FRAME_WORDS,
)
from reservoir.native.jit import address
from reservoir.segments.chunk import HotRows
from reservoir.segments.source import Held

# The most chunks that are decoded ahead and not yet used: this many, or two for each cursor. The oldest goes first.
_AHEAD_FREE = 16
# Eviction frees some more room than is needed, so that it need not run for every chunk.
_SLACK = 16

# The factors of (column set, chunk) in the key of a frame.
_KEY = np.array([1, 256], np.int64)

# Returns where the cursors stand: int64[cursors][2] of (column set, chunk).
Standing = Callable[[], NDArray[np.int64]]
# Reads and decodes one chunk; may run on another thread.
Decode = Callable[[], HeldFrame]


@dataclass(slots=True)
class CacheStats:
    """Counters since the start. hits: chunks that were decoded ahead of their use. misses: chunks waited for."""

    hits: int = 0
    misses: int = 0
    prefetched: int = 0
    evicted: int = 0
    wasted: int = 0


class _Ahead(NamedTuple):
    """A chunk that is being decoded in the background: how, with which columns, and from which rows in memory."""

    frame: Ahead
    decode: Decode
    columns: frozenset[HotColumn]
    held: Held | None


def _rows(frame: Ahead) -> HotRows | None:
    """Return the rows of a chunk that is being decoded in the background; None if it is not done."""
    done = frame.done() and not frame.cancelled() and frame.exception() is None
    return frame.result().rows if done else None


class FrameCache:
    """Owns the frame table and the FRAMES words of the context. Frame 0 is that of the open region.

    A frame that was used since the last advance began stays, whatever the limit. So the frames of one advance may
    exceed the limit.
    """

    def __init__(
        self,
        context: NDArray[np.int64],
        limit_bytes: int,
        frames_max: int,
        decoder: Callable[[int, Sequence[HotColumn], Held | None], Callable[[], HotRows]],
        standing: Standing,
        executor: Executor,
    ) -> None:
        """decoder(chunk, columns, held): returns a function that decodes a chunk, see ChunkSource.decoder.
        standing(): returns where the cursors stand.
        """
        self._context, self._words = context, context.data
        self.limit_bytes, self._decoder, self._standing = limit_bytes, decoder, standing
        self.table = np.zeros((frames_max, FRAME_WORDS), np.int64)
        self._flat = self.table.reshape(-1).data
        self._keys = np.full(frames_max, -1, np.int64)
        self.table[0, FRAME_CHUNK] = -1
        context[at.FRAMES], context[at.FRAME_KEYS] = address(self.table), address(self._keys)
        context[at.FRAMES_USED], context[at.FRAMES_STAMP] = 1, 1
        self._held: dict[int, HeldFrame] = {}
        self._frame_of: dict[int, int] = {}
        self._free: list[int] = []
        self._ahead: dict[int, _Ahead] = {}
        # Frames by key, with columns that their set will get.
        self._coming: dict[int, _Ahead] = {}
        self._lane = executor.lane("chunk-prefetch")
        self._hot: tuple[HotColumn, ...] = ()
        self._sets: dict[int, tuple[HotColumn, ...]] = {}
        self.bytes = 0
        self.stats = CacheStats()

    def set_hot(self, hot: Sequence[HotColumn]) -> None:
        """Set the hot columns, whose order numbers the descriptors of a frame. Every column set is empty afterwards."""
        self._sets = {}
        # A decoding under way may ask for a column that `compute_columns` does not know any more.
        known = frozenset(hot)
        for requested in (self._ahead, self._coming):
            for key in [key for key, each in requested.items() if not each.columns <= known]:
                self._give_up(requested, key)
        if tuple(hot) == self._hot:
            return
        self._hot = tuple(hot)
        for frame, held in self._held.items():
            seen = self._seen(held)
            if seen is not held:
                self._show(frame, seen)

    def prefetch_columns(
        self, column_set: int, columns: Sequence[HotColumn], hot: Sequence[HotColumn]
    ) -> list[Ahead]:
        """Decode in the background columns that a set will soon get besides its own.

        They are decoded for the frames in which cursors stand, and for those that are decoded ahead. hot: the hot
        columns that will then be in force; `compute_columns` knows them already. Returns handles that the caller may
        wait for. The work is given up if other hot columns are set.
        """
        for key in list(self._coming):
            self._give_up(self._coming, key)
        requested = tuple(dict.fromkeys((*self._sets.get(column_set, ()), *columns)))
        for key in self._met() & self._frame_of.keys():
            held = self._held[self._frame_of[key]]
            if key % 256 == column_set and not held.has(requested):
                self._coming[key] = self._submit(key, requested, hot, held.read, at_leisure=True)
        self._widen(column_set, requested, hot, at_leisure=True)
        return [each.frame for each in (*self._coming.values(), *self._ahead.values())]

    def set_columns(self, column_set: int, columns: Sequence[HotColumn]) -> None:
        """Set the columns that frames of a set have from now on. Frames that have them already stay.

        Frames in which a cursor stands, and those decoded ahead, get only the columns that they lack, in the
        background.
        """
        self._sets[column_set] = tuple(columns)
        met = self._met()
        for key, frame in list(self._frame_of.items()):
            if key % 256 != column_set or self._held[frame].has(columns):
                continue
            held, coming = self._held[frame], self._coming.get(key)
            if coming is None or not coming.columns.issuperset(columns):
                self._drop(key)
                if key in met:
                    self._ahead[key] = self._submit(key, columns, self._hot, held.read)
                continue
            del self._coming[key]
            if _rows(coming.frame) is not None:
                self._show(frame, self._seen(coming.frame.result()))
            else:
                self._drop(key)
                self._ahead[key] = coming
        self._widen(column_set, columns, self._hot)
        # Frames that got columns have become larger.
        self._make_room(0)

    def load(self, column_set: int, chunk: int) -> int:
        """Return the frame of a chunk. Decode it now if it was not decoded ahead. Raises what decoding raises."""
        key = chunk * 256 + column_set
        frame = self._frame_of.get(key)
        if frame is not None:
            return frame
        ahead = self._ahead.pop(key, None)
        is_hit = ahead is not None and ahead.frame.done()
        self.stats.hits += is_hit
        self.stats.misses += not is_hit
        if ahead is not None:
            # If the background has not begun with it, it is decoded here.
            held = ahead.decode() if not is_hit and ahead.frame.cancel() else ahead.frame.result()
            # The set may have got other columns since the chunk was asked for.
            if not held.has(self._columns(column_set)):
                held = self._decode(key, self._columns(column_set), self._hot, held.read)()
            return self._install(key, self._seen(held))
        return self._install(key, self._decode(key, self._columns(column_set), self._hot)())

    def prefetch(self, column_set: int, chunk: int) -> None:
        """Decode a chunk in the background, unless it is in memory."""
        key = chunk * 256 + column_set
        if key not in self._frame_of and key not in self._ahead:
            while len(self._ahead) >= _AHEAD_FREE and len(self._ahead) > 2 * len(self._standing()):
                self._drop(next(iter(self._ahead)))
            self._ahead[key] = self._submit(key, self._columns(column_set), self._hot)

    def is_ready(self, column_set: int, chunk: int) -> bool:
        """Whether a chunk is in memory, or decoded. If not, start to decode it in the background."""
        key = chunk * 256 + column_set
        ahead = self._ahead.get(key)
        if key in self._frame_of or (ahead is not None and ahead.frame.done()):
            return True
        self.prefetch(column_set, chunk)
        return False

    def drop_before(self, chunk: int) -> None:
        """Drop the frames of chunks before this one."""
        for key in [*self._frame_of, *self._ahead]:
            if key // 256 < chunk:
                self._drop(key)

    def close(self) -> None:
        """Stop decoding ahead, and drop all frames."""
        self._lane.close()
        for key in [*self._frame_of, *self._ahead]:
            self._drop(key)

    def _columns(self, column_set: int) -> tuple[HotColumn, ...]:
        return self._sets.get(column_set, ())

    def _met(self) -> set[int]:
        """Return the keys of the frames in which cursors stand."""
        return set((self._standing() @ _KEY).tolist())

    def _submit(
        self,
        key: int,
        columns: Sequence[HotColumn],
        hot: Sequence[HotColumn],
        held: Held | None = None,
        *,
        at_leisure: bool = False,
    ) -> _Ahead:
        """Make a frame in the background; see `_decode`."""
        self.stats.prefetched += 1
        decode = self._decode(key, columns, hot, held)
        return _Ahead(self._lane.submit(decode, at_leisure=at_leisure), decode, frozenset(columns), held)

    def _decode(
        self, key: int, columns: Sequence[HotColumn], hot: Sequence[HotColumn], held: Held | None = None
    ) -> Decode:
        """Return a function that makes the frame of a chunk with these columns.

        held: returns rows of the chunk that are in memory by then, from which columns are taken; or None.
        """
        decode, shown = self._decoder(key // 256, columns, held), tuple(hot)
        return lambda: held_frame(decode(), shown)

    def _widen(
        self,
        column_set: int,
        columns: Sequence[HotColumn],
        hot: Sequence[HotColumn],
        *,
        at_leisure: bool = False,
    ) -> None:
        """Give the chunks that are decoded ahead for a set those of these columns that they lack.

        Columns that are not among the hot ones are dropped: they were prefetched for another change, and
        `compute_columns` has forgotten them.
        """
        known = frozenset(hot)
        for key, ahead in list(self._ahead.items()):
            if key % 256 == column_set and not known >= ahead.columns >= frozenset(columns):
                # A decoding that has not begun is cancelled. Of one that has begun, only the frame is held, not the
                # rows from which it was made.
                held = ahead.held if ahead.frame.cancel() else partial(_rows, ahead.frame)
                self._ahead[key] = self._submit(key, columns, hot, held, at_leisure=at_leisure)

    def _seen(self, held: HeldFrame) -> HeldFrame:
        """Return a frame with its descriptors in the order of the hot columns in force."""
        return held if held.shows(self._hot) else held_frame(held.rows, self._hot)

    def _install(self, key: int, held: HeldFrame) -> int:
        self._make_room(held.size_bytes)
        frame = self._free.pop() if self._free else self._words[at.FRAMES_USED]
        if frame == len(self.table):
            raise CapacityError("frames in memory", len(self.table))
        self._words[at.FRAMES_USED] = max(frame + 1, self._words[at.FRAMES_USED])
        words, base, rows = self._flat, frame * FRAME_WORDS, held.rows
        words[base + FRAME_ROWS] = rows.rows
        words[base + FRAME_TIME], words[base + FRAME_SEQ] = rows.time_at, rows.seq_at
        words[base + FRAME_CHUNK], words[base + FRAME_SET] = key // 256, key % 256
        words[base + FRAME_STAMP] = self._words[at.FRAMES_STAMP]
        self._keys[frame] = key
        self._frame_of[key] = frame
        self._show(frame, held)
        return frame

    def _show(self, frame: int, held: HeldFrame) -> None:
        """Point a frame of the table to these descriptors."""
        before = self._held.get(frame)
        self.bytes += held.size_bytes - (0 if before is None else before.size_bytes)
        self._held[frame] = held
        self._flat[frame * FRAME_WORDS + FRAME_COLUMNS] = address(held.descriptors)

    def _make_room(self, size_bytes: int) -> None:
        """Evict the frames whose next use is furthest, until size_bytes (and some more) fit or only frames in use stay.

        Each chunk that is being decoded ahead counts as another size_bytes. But no chunk in which a cursor stands is
        evicted for those.
        """
        ahead_bytes = size_bytes * len(self._ahead)
        if self.bytes + size_bytes + ahead_bytes <= self.limit_bytes or not self._held:
            return
        frames = np.fromiter(self._held, np.int64, len(self._held))
        heads = self.table[frames]
        frames = frames[heads[:, FRAME_STAMP] != self._words[at.FRAMES_STAMP]]
        distances = self._distances(self.table[frames])
        order = np.argsort(-distances, kind="stable")
        for frame, distance in zip(frames[order].tolist(), distances[order].tolist()):
            if distance == 0 and self.bytes + size_bytes <= self.limit_bytes:
                return
            self.stats.evicted += 1
            self._drop(int(self._keys[frame]))
            if self.bytes + size_bytes + ahead_bytes <= self.limit_bytes - self.limit_bytes // _SLACK:
                return

    def _distances(self, heads: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return, for each frame, how many chunks the nearest cursor of its set is behind it; a large number if none
        is.
        """
        standing = self._standing()
        distances = np.full(len(heads), at.INT64_MAX, np.int64)
        for column_set in distinct(heads[:, FRAME_SET]):
            mine = heads[:, FRAME_SET] == column_set
            chunks = np.sort(standing[standing[:, 0] == column_set, 1])
            if len(chunks):
                places = heads[mine, FRAME_CHUNK]
                nearest = np.searchsorted(chunks, places, side="right") - 1
                gap = places - chunks[np.maximum(nearest, 0)]
                distances[mine] = np.where(nearest >= 0, gap, at.INT64_MAX)
        return distances

    def _drop(self, key: int) -> None:
        self._give_up(self._ahead, key)
        self._give_up(self._coming, key)
        frame = self._frame_of.pop(key, None)
        if frame is not None:
            self.bytes -= self._held.pop(frame).size_bytes
            self._keys[frame] = -1
            self.table[frame] = 0
            self._free.append(frame)

    def _give_up(self, requested: dict[int, _Ahead], key: int) -> None:
        ahead = requested.pop(key, None)
        if ahead is not None:
            self.stats.wasted += 1
            ahead.frame.cancel()
