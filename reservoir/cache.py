"""Decoded chunks in memory, bounded in bytes: decoded ahead of the cursors, evicted by next use."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reservoir import layout as at
from reservoir.chunk import HotRows
from reservoir.columns import HotColumn, Kind
from reservoir.compiled import address
from reservoir.errors import CapacityError
from reservoir.frames import (
    COLUMN_CODES,
    COLUMN_COUNT,
    COLUMN_HEAP,
    COLUMN_KIND,
    COLUMN_NULLS,
    COLUMN_PAIRS,
    COLUMN_ROW_CACHE,
    COLUMN_WORDS,
    COLUMN_WORDS_AT,
    FRAME_CHUNK,
    FRAME_COLUMNS,
    FRAME_ROWS,
    FRAME_SEQ,
    FRAME_SET,
    FRAME_STAMP,
    FRAME_TIME,
    FRAME_WORDS,
)

# Chunks decoded ahead and not yet met, beyond one per cursor; the oldest goes when there are more.
_AHEAD_SPARE = 8

# Decodes a chunk with these columns; may run on another thread.
Decode = Callable[[], HotRows]
# Where cursors stand: int64[cursors][3] of (column set, chunk, anything).
Standing = Callable[[], NDArray[np.int64]]


@dataclass(slots=True)
class CacheStats:
    """Counts since the start: uses of a chunk that was there (hits: decoded ahead; misses: waited for)."""

    hits: int = 0
    misses: int = 0
    prefetched: int = 0
    evicted: int = 0
    wasted: int = 0


@dataclass(slots=True)
class _Frame:
    """What keeps a frame's memory alive."""

    rows: HotRows
    descriptors: NDArray[np.int64]
    caches: list[NDArray[np.int64]] = field(default_factory=list)
    size_bytes: int = 0


class Prefetcher:
    """One thread that decodes ahead, in the order asked."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queue: deque[tuple[Future[HotRows], Decode]] = deque()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="chunk-prefetch", daemon=True)
        self._thread.start()

    def submit(self, decode: Decode) -> "Future[HotRows]":
        """Decode in the background."""
        future: Future[HotRows] = Future()
        with self._changed:
            self._queue.append((future, decode))
            self._changed.notify()
        return future

    def close(self) -> None:
        """Finish what is in work and stop the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closing)
                if self._closing:
                    return
                future, decode = self._queue.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(decode())
            except BaseException as error:  # noqa: BLE001  (raised where the result is used)
                future.set_exception(error)


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
        decoder: Callable[[int, Sequence[HotColumn]], Decode],
        standing: Standing,
    ) -> None:
        """decoder(chunk, columns) gives what decodes a chunk; standing() where the cursors are."""
        self._context, self._words = context, context.data
        self.limit_bytes, self._decoder, self._standing = limit_bytes, decoder, standing
        self.table = np.zeros((frames_max, FRAME_WORDS), np.int64)
        self._keys = np.full(frames_max, -1, np.int64)
        self.table[0, FRAME_CHUNK] = -1
        context[at.FRAMES], context[at.FRAME_KEYS] = address(self.table), address(self._keys)
        context[at.FRAMES_USED], context[at.FRAMES_STAMP] = 1, 1
        self._held: dict[int, _Frame] = {}
        self._frame_of: dict[int, int] = {}
        self._free: list[int] = []
        self._ahead: dict[int, Future[HotRows]] = {}
        self._prefetcher = Prefetcher()
        self._hot: tuple[HotColumn, ...] = ()
        self._sets: dict[int, tuple[HotColumn, ...]] = {}
        self.bytes = 0
        self.stats = CacheStats()

    def set_hot(self, hot: Sequence[HotColumn]) -> None:
        """The hot columns, whose places number the descriptors of a frame; every set is empty afterwards."""
        self._hot, self._sets = tuple(hot), {}
        for key in [*self._frame_of, *self._ahead]:
            self._drop(key)

    def set_columns(self, column_set: int, columns: Sequence[HotColumn]) -> None:
        """The columns that frames of a set hold from now on."""
        self._sets[column_set] = tuple(columns)
        for key in [*self._frame_of, *self._ahead]:
            if key % 256 == column_set:
                self._drop(key)

    def load(self, column_set: int, chunk: int) -> int:
        """The frame of a chunk, decoded now if it was not decoded ahead. Raises what decoding raises."""
        key = chunk * 256 + column_set
        frame = self._frame_of.get(key)
        if frame is not None:
            return frame
        ahead = self._ahead.pop(key, None)
        if ahead is not None and ahead.done():
            self.stats.hits += 1
            return self._install(key, ahead.result())
        self.stats.misses += 1
        if ahead is not None and not ahead.cancel():
            return self._install(key, ahead.result())
        return self._install(key, self._decoder(chunk, self._columns(column_set))())

    def prefetch(self, column_set: int, chunk: int) -> None:
        """Decode a chunk in the background, unless it is there."""
        key = chunk * 256 + column_set
        if key not in self._frame_of and key not in self._ahead:
            while len(self._ahead) >= len(self._standing()) + _AHEAD_SPARE:
                self._drop(next(iter(self._ahead)))
            self.stats.prefetched += 1
            self._ahead[key] = self._prefetcher.submit(self._decoder(chunk, self._columns(column_set)))

    def drop_before(self, chunk: int) -> None:
        """Forget chunks before this one."""
        for key in [*self._frame_of, *self._ahead]:
            if key // 256 < chunk:
                self._drop(key)

    def close(self) -> None:
        """Stop decoding ahead and let go of all frames."""
        self._prefetcher.close()
        for key in [*self._frame_of, *self._ahead]:
            self._drop(key)

    def _columns(self, column_set: int) -> tuple[HotColumn, ...]:
        return self._sets.get(column_set, ())

    def _install(self, key: int, rows: HotRows) -> int:
        held = self._hold(rows)
        self._make_room(held.size_bytes)
        frame = self._free.pop() if self._free else self._words[at.FRAMES_USED]
        if frame == len(self.table):
            raise CapacityError("frames in memory", len(self.table))
        self._words[at.FRAMES_USED] = max(frame + 1, self._words[at.FRAMES_USED])
        words = self.table[frame]
        words[[FRAME_ROWS, FRAME_TIME, FRAME_SEQ]] = rows.rows, rows.time_at, rows.seq_at
        words[[FRAME_COLUMNS, FRAME_CHUNK, FRAME_SET]] = address(held.descriptors), key // 256, key % 256
        words[FRAME_STAMP] = self._words[at.FRAMES_STAMP]
        self._keys[frame] = key
        self._held[frame], self._frame_of[key] = held, frame
        self.bytes += held.size_bytes
        return frame

    def _hold(self, rows: HotRows) -> _Frame:
        descriptors = np.zeros((max(1, len(self._hot)), COLUMN_WORDS), np.int64)
        held = _Frame(rows, descriptors, size_bytes=rows.size_bytes + descriptors.nbytes)
        for stored in rows.columns:
            row = descriptors[self._hot.index(stored.column)]
            row[COLUMN_KIND] = stored.column.kind
            row[[COLUMN_WORDS_AT, COLUMN_NULLS, COLUMN_HEAP]] = (
                stored.words_at,
                stored.nulls_at,
                stored.heap_at,
            )
            if stored.column.kind is Kind.ENTITY:
                cache = np.zeros(stored.count, np.int64)
                row[[COLUMN_CODES, COLUMN_PAIRS]] = stored.codes_at, stored.pairs_at
                row[[COLUMN_ROW_CACHE, COLUMN_COUNT]] = address(cache), stored.count
                held.caches.append(cache)
                held.size_bytes += cache.nbytes
        return held

    def _make_room(self, size_bytes: int) -> None:
        """Evict what will be used last, until size_bytes fit or only frames in use are left."""
        if self.bytes + size_bytes <= self.limit_bytes or not self._held:
            return
        frames = np.fromiter(self._held, np.int64, len(self._held))
        heads = self.table[frames]
        frames = frames[heads[:, FRAME_STAMP] != self._words[at.FRAMES_STAMP]]
        for frame in frames[np.argsort(-self._distances(self.table[frames]), kind="stable")].tolist():
            self.stats.evicted += 1
            self._drop(int(self._keys[frame]))
            if self.bytes + size_bytes <= self.limit_bytes:
                return

    def _distances(self, heads: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each frame, how many chunks behind it the nearest cursor of its set is; many if none is."""
        standing = self._standing()
        distances = np.full(len(heads), at.INT64_MAX, np.int64)
        for column_set in np.unique(heads[:, FRAME_SET]):
            mine = heads[:, FRAME_SET] == column_set
            chunks = np.sort(standing[standing[:, 0] == column_set, 1])
            if len(chunks):
                places = heads[mine, FRAME_CHUNK]
                nearest = np.searchsorted(chunks, places, side="right") - 1
                gap = places - chunks[np.maximum(nearest, 0)]
                distances[mine] = np.where(nearest >= 0, gap, at.INT64_MAX)
        return distances

    def _drop(self, key: int) -> None:
        ahead = self._ahead.pop(key, None)
        if ahead is not None:
            self.stats.wasted += 1
            ahead.cancel()
        frame = self._frame_of.pop(key, None)
        if frame is not None:
            self.bytes -= self._held.pop(frame).size_bytes
            self._keys[frame] = -1
            self.table[frame] = 0
            self._free.append(frame)
