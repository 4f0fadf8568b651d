"""Bids: half of them at a popular auction, three quarters by a busy bidder, half over one of four channels."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from bench.distributions import Int64Array
from bench.workloads.blocks import DAY_MS, EVENTS, batch, poisson_times

_DAY_EVENTS = 200_000
# Of 50 events of Nexmark 46 are bids, 3 are auctions and one is a person.
_BIDS, _AUCTIONS, _PEOPLE = 46, 3, 1
_HOT_EVERY, _HOT_AUCTIONS, _HOT_BIDDERS = 100, 0.5, 0.75
_OPEN_AUCTIONS, _ACTIVE_PEOPLE = 100, 1_000
_CHANNELS = np.array(["Apple", "Baidu", "Facebook", "Google"])
_HOT_CHANNELS, _OTHER_CHANNELS = 0.5, 10_000
_PRICE_LEAST, _PRICE_MAGNITUDES = 100, 6


def blocks(scale: float, seed: int) -> Iterator[pa.RecordBatch]:
    """Yield bids without an end, at scale 1 200,000 a day. Each order of magnitude of prices is equally frequent."""
    rng = np.random.default_rng(seed)
    times = poisson_times(rng, _DAY_EVENTS * scale * 1000 / DAY_MS)
    for block, times_ms in enumerate(times):
        bids = block * EVENTS + np.arange(EVENTS)
        prices = _PRICE_LEAST * 10 ** (rng.random(EVENTS) * _PRICE_MAGNITUDES)
        others = rng.integers(_OTHER_CHANNELS, size=EVENTS)
        channels = np.where(
            rng.random(EVENTS) < _HOT_CHANNELS,
            _CHANNELS[rng.integers(len(_CHANNELS), size=EVENTS)],
            np.char.add("channel-", others.astype(str)),
        )
        columns = {
            "auction": _one_of(rng, bids * _AUCTIONS // _BIDS, _OPEN_AUCTIONS, _HOT_AUCTIONS),
            "bidder": _one_of(rng, bids * _PEOPLE // _BIDS, _ACTIVE_PEOPLE, _HOT_BIDDERS),
            "channel": channels,
            "price": np.rint(prices).astype(np.int64),
        }
        yield batch(block * EVENTS, "bid", times_ms, columns)


def _one_of(rng: np.random.Generator, newest: Int64Array, active: int, hot_share: float) -> Int64Array:
    """Return one of the latest auctions or people, or with some probability the one that is popular just now."""
    latest = np.maximum(newest - rng.integers(active, size=EVENTS), 0)
    hot = newest // _HOT_EVERY * _HOT_EVERY
    found: Int64Array = np.where(rng.random(EVENTS) < hot_share, hot, latest)
    return found
