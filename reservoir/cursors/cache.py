"""Decoded chunks in memory, bounded in bytes: decoded ahead of the cursors, evicted by next use."""

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

# Chunks decoded ahead and not yet met: this many, or two per cursor; the oldest goes when there are more.
_AHEAD_FREE = 16
# Eviction makes some more room than is needed, so that it is not done for every chunk.
_SLACK = 16

# A chunk's key in a column set, from (set, chunk).
_KEY = np.array([1, 256], np.int64)

# Where cursors stand: int64[cursors][2] of (column set, chunk).
Standing = Callable[[], NDArray[np.int64]]
# Reads and decodes one chunk; may run on another thread.
Decode = Callable[[], HeldFrame]


@dataclass(slots=True)
class CacheStats:
    """Counts since the start: uses of a chunk that was there (hits: decoded ahead; misses: waited for)."""

    hits: int = 0
    misses: int = 0
    prefetched: int = 0
    evicted: int = 0
    wasted: int = 0


class _Ahead(NamedTuple):
    """A chunk that is decoded in the background, how, with which columns, and of which rows where some are held."""

    frame: Ahead
    decode: Decode
    columns: frozenset[HotColumn]
    held: Held | None


def _rows(frame: Ahead) -> HotRows | None:
    """The rows of what is decoded in the background; None where they are not there yet."""
    done = frame.done() and not frame.cancelled() and frame.exception() is None
    return frame.result().rows if done else None


class FrameCache:
    """Owns the frame table and the FRAMES words of the context. Frame 0 is the open region's.

    A frame used since the last advance began stays whatever the limit, so the limit may be passed by what
    one advance needs.
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
        """decoder(chunk, columns, held) gives what decodes a chunk, see ChunkSource.decoder; standing() where the
        cursors are.
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
        # By key, frames with columns that their set will get.
        self._coming: dict[int, _Ahead] = {}
        self._lane = executor.lane("chunk-prefetch")
        self._hot: tuple[HotColumn, ...] = ()
        self._sets: dict[int, tuple[HotColumn, ...]] = {}
        self.bytes = 0
        self.stats = CacheStats()

    def set_hot(self, hot: Sequence[HotColumn]) -> None:
        """The hot columns, whose places number the descriptors of a frame; every set is empty afterwards."""
        self._sets = {}
        # What is being decoded may ask for a column that `compute_columns` does not know any more.
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
        """A set will get these columns besides its own, among these hot columns: they are decoded in the background
        for frames that a cursor is in and for what is decoded ahead. `compute_columns` knows them already.

        Returns what may be waited for. It is given up where the hot columns come to be others.
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
        """The columns that frames of a set hold from now on. Those that have them already stay.

        Frames that a cursor is in, and what is decoded ahead, get those that they lack alone, in the background.
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
        # Frames that got columns are larger than they were.
        self._make_room(0)

    def load(self, column_set: int, chunk: int) -> int:
        """The frame of a chunk, decoded now if it was not decoded ahead. Raises what decoding raises."""
        key = chunk * 256 + column_set
        frame = self._frame_of.get(key)
        if frame is not None:
            return frame
        ahead = self._ahead.pop(key, None)
        is_hit = ahead is not None and ahead.frame.done()
        self.stats.hits += is_hit
        self.stats.misses += not is_hit
        if ahead is not None:
            # Where its turn has not come yet it is decoded here.
            held = ahead.decode() if not is_hit and ahead.frame.cancel() else ahead.frame.result()
            # The set may have got other columns since it was asked for.
            if not held.has(self._columns(column_set)):
                held = self._decode(key, self._columns(column_set), self._hot, held.read)()
            return self._install(key, self._seen(held))
        return self._install(key, self._decode(key, self._columns(column_set), self._hot)())

    def prefetch(self, column_set: int, chunk: int) -> None:
        """Decode a chunk in the background, unless it is there."""
        key = chunk * 256 + column_set
        if key not in self._frame_of and key not in self._ahead:
            while len(self._ahead) >= _AHEAD_FREE and len(self._ahead) > 2 * len(self._standing()):
                self._drop(next(iter(self._ahead)))
            self._ahead[key] = self._submit(key, self._columns(column_set), self._hot)

    def is_ready(self, column_set: int, chunk: int) -> bool:
        """Is a chunk there, or decoded? Else it is being decoded in the background from now on."""
        key = chunk * 256 + column_set
        ahead = self._ahead.get(key)
        if key in self._frame_of or (ahead is not None and ahead.frame.done()):
            return True
        self.prefetch(column_set, chunk)
        return False

    def drop_before(self, chunk: int) -> None:
        """Forget chunks before this one."""
        for key in [*self._frame_of, *self._ahead]:
            if key // 256 < chunk:
                self._drop(key)

    def close(self) -> None:
        """Stop decoding ahead and let go of all frames."""
        self._lane.close()
        for key in [*self._frame_of, *self._ahead]:
            self._drop(key)

    def _columns(self, column_set: int) -> tuple[HotColumn, ...]:
        return self._sets.get(column_set, ())

    def _met(self) -> set[int]:
        """The keys of what cursors are in."""
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
        """Have it made in the background, see `_decode`."""
        self.stats.prefetched += 1
        decode = self._decode(key, columns, hot, held)
        return _Ahead(self._lane.submit(decode, at_leisure=at_leisure), decode, frozenset(columns), held)

    def _decode(
        self, key: int, columns: Sequence[HotColumn], hot: Sequence[HotColumn], held: Held | None = None
    ) -> Decode:
        """What makes the frame of a chunk with these columns, of rows that are held where there are some by then."""
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
        """What is decoded ahead for a set is wanted with these columns: those that it lacks are decoded besides, and
        none that are not among the hot ones: they were prefetched for another change, and `compute_columns` has
        forgotten them.
        """
        known = frozenset(hot)
        for key, ahead in list(self._ahead.items()):
            if key % 256 == column_set and not known >= ahead.columns >= frozenset(columns):
                # What has not begun is not done besides. Of what has, the frame alone is held: not what it was made of.
                held = ahead.held if ahead.frame.cancel() else partial(_rows, ahead.frame)
                self._ahead[key] = self._submit(key, columns, hot, held, at_leisure=at_leisure)

    def _seen(self, held: HeldFrame) -> HeldFrame:
        """A frame with descriptors by the numbers of the hot columns in force."""
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
        """Let a frame have these descriptors."""
        before = self._held.get(frame)
        self.bytes += held.size_bytes - (0 if before is None else before.size_bytes)
        self._held[frame] = held
        self._flat[frame * FRAME_WORDS + FRAME_COLUMNS] = address(held.descriptors)

    def _make_room(self, size_bytes: int) -> None:
        """Evict what will be used last, until size_bytes fit (and some more) or only frames in use are left.

        What is being decoded ahead counts, as if each were as large, but no chunk that a cursor is in goes for it.
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
        """For each frame, how many chunks behind it the nearest cursor of its set is; many if none is."""
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
