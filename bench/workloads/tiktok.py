"""Interactions of people with videos, of which some are very popular."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from bench.distributions import zipf
from bench.workloads.blocks import DAY_MS, EVENTS, batch, poisson_times

_WEEK_EVENTS, _VIDEOS, _PEOPLE, _CATEGORIES = 2_000_000, 20_000, 100_000, 50
_POPULARITY = 0.8
_KINDS = np.array(["view", "like", "share", "skip"])
_KIND_SHARES = (0.7, 0.15, 0.05, 0.1)
_WATCHED_MEAN_S, _WATCHED_MAX_S = 30.0, 600


def blocks(scale: float, seed: int) -> Iterator[pa.RecordBatch]:
    """Yield interactions without an end: at scale 1 two million in a week."""
    rng = np.random.default_rng(seed)
    videos = max(10, int(_VIDEOS * scale))
    times = poisson_times(rng, _WEEK_EVENTS * scale * 1000 / (7 * DAY_MS))
    for block, times_ms in enumerate(times):
        watched = np.minimum(rng.exponential(_WATCHED_MEAN_S, EVENTS), _WATCHED_MAX_S).astype(np.int64)
        columns = {
            "video": zipf(rng, videos, _POPULARITY, EVENTS),
            "person": rng.integers(_PEOPLE, size=EVENTS),
            "category": rng.integers(_CATEGORIES, size=EVENTS),
            "kind": _KINDS[rng.choice(len(_KINDS), EVENTS, p=_KIND_SHARES)],
            "watched_s": watched,
        }
        yield batch(block * EVENTS, "interaction", times_ms, columns)
