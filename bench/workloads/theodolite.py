"""Measurements of power: each sensor sends one in each period, all of them in another order each time."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from bench.workloads.blocks import EVENTS, START_MS, batch, rising

_SENSORS, _PERIOD_MS = 4_000, 5_400_000
_DAILY_MS = 86_400_000
_MEAN_W, _SWING_W, _NOISE_W = 500.0, 300.0, 40.0


def blocks(scale: float, seed: int) -> Iterator[pa.RecordBatch]:
    """Yield measurements without an end: at scale 1 of 4,000 sensors, each 480 times in 30 days."""
    rng = np.random.default_rng(seed)
    sensors = max(10, int(_SENSORS * scale))
    rounds = max(1, EVENTS // sensors)
    # The hour at which a sensor measures most differs.
    peaks_ms = rng.integers(_DAILY_MS, size=sensors)
    latest, first = START_MS - 1, 0
    while True:
        begun = START_MS + (first // sensors + np.arange(rounds)) * _PERIOD_MS
        within = np.sort(rng.random((rounds, sensors)) * _PERIOD_MS, axis=1)
        times_ms = rising((begun[:, None] + within).ravel(), latest)
        who = np.concatenate([rng.permutation(sensors) for _ in range(rounds)])
        phase = 2 * np.pi * (times_ms - peaks_ms[who]) / _DAILY_MS
        watts = _MEAN_W + _SWING_W * np.cos(phase) + _NOISE_W * rng.standard_normal(len(who))
        yield batch(first, "measurement", times_ms, {"sensor": who, "watts": np.round(watts, 1)})
        latest, first = int(times_ms[-1]), first + len(who)
