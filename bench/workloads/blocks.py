"""Makes blocks of events for generators: times in order, no two at one time, and columns as Arrow has them."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from bench.distributions import Float64Array, Int64Array

START_MS = 1_704_067_200_000
"""Monday 2024-01-01 00:00 UTC."""
DAY_MS = 86_400_000
EVENTS = 65_536
"""The number of events of a block."""


def rising(times_ms: Float64Array | Int64Array, after_ms: int) -> Int64Array:
    """Return times in order that are all after a time, no two of them equal: each a little later where it has to be.

    times_ms: in order.
    """
    places = np.arange(len(times_ms))
    whole = np.maximum(times_ms.astype(np.int64), after_ms + 1)
    found: Int64Array = np.maximum.accumulate(whole - places) + places
    return found


def poisson_times(rng: np.random.Generator, rate_per_s: float) -> Iterator[Int64Array]:
    """Yield the times of blocks of events that come at random, so many a second on average."""
    latest, at_ms = START_MS - 1, float(START_MS)
    while True:
        times = at_ms + np.cumsum(rng.exponential(1000 / rate_per_s, EVENTS))
        at_ms = float(times[-1])
        found = rising(times, latest)
        latest = int(found[-1])
        yield found


def batch(first_id: int, id_name: str, times_ms: Int64Array, columns: Mapping[str, Any]) -> pa.RecordBatch:
    """Return events as an Arrow batch: their numbers, their times as `ts`, and other columns."""
    ids = np.arange(first_id, first_id + len(times_ms))
    arrays = {id_name: ids, "ts": times_ms, **columns}
    return pa.RecordBatch.from_arrays([pa.array(each) for each in arrays.values()], list(arrays))
