"""What is decoded and what is being decoded ahead keep to one limit; the chunks that cursors are in stay."""

import numpy as np
from numpy.typing import NDArray

from reservoir import layout as at
from reservoir.cursors.cache import FrameCache
from reservoir.segments.chunk import HotRows
from reservoir.thread_executor import ThreadExecutor

_FRAME_BYTES = 1_000
_NO_SET = 0


def _cache(limit_frames: int, standing: list[int]) -> tuple[FrameCache, NDArray[np.int64]]:
    """Chunks of equal size under a limit of so many, cursors standing in some."""
    context = np.zeros(at.CONTEXT_WORDS, np.int64)

    def decoder(chunk: int, columns: object, held: object) -> "object":
        return lambda: HotRows(1, 0, 0, (), _FRAME_BYTES - 8 * 10, ())

    places = np.array([[_NO_SET, chunk] for chunk in standing], np.int64)
    cache = FrameCache(context, limit_frames * _FRAME_BYTES, 64, decoder, lambda: places, ThreadExecutor())  # type: ignore[arg-type]
    return cache, context


def _held(cache: FrameCache) -> set[int]:
    return {key // 256 for key in cache._frame_of}


def test_what_is_read_ahead_counts() -> None:
    cache, context = _cache(16, [100])
    try:
        for chunk in range(12):
            cache.load(_NO_SET, chunk)
        assert len(_held(cache)) == 12
        context[at.FRAMES_STAMP] += 1
        for chunk in range(101, 107):
            cache.prefetch(_NO_SET, chunk)
        cache.load(_NO_SET, 100)
        assert cache.bytes + 6 * _FRAME_BYTES <= cache.limit_bytes
        assert 100 in _held(cache)
    finally:
        cache.close()


def test_where_cursors_are_is_kept_whatever_is_read_ahead() -> None:
    cursors = [10, 20, 30, 40]
    cache, context = _cache(6, cursors)
    try:
        for chunk in (1, *cursors[:3]):
            cache.load(_NO_SET, chunk)
        context[at.FRAMES_STAMP] += 1
        for chunk in cursors:
            cache.prefetch(_NO_SET, chunk + 1)
        cache.load(_NO_SET, 40)
        assert _held(cache) == set(cursors)
        assert cache.stats.misses == 5
    finally:
        cache.close()
