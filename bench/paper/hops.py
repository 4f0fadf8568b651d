"""Computes how far sums over hopping windows are from the exact ones. No system runs.

A hopping system has several windows open at the time of an event. The one with most of the exact window's events is the
oldest: it begins at a multiple of the hop, and so misses up to one hop of the oldest events (figure 1 of the paper).
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.keeping import Figures

HOPS_S = (300, 120, 60, 30, 10, 5, 1)
"""The hops that are compared: those of the paper are between the first and the last."""

_RIGHT = 1e-9


class Sums:
    """Payments by card and time, for sums over any of their spans.

    cards int64[n], times_ms int64[n] (not falling), amounts float64[n].
    """

    def __init__(
        self, cards: NDArray[np.int64], times_ms: NDArray[np.int64], amounts: NDArray[np.float64]
    ) -> None:
        self._order = order = np.argsort(cards, kind="stable")
        since_ms = times_ms - times_ms[0]
        self._stride = int(since_ms[-1]) + 2
        self._cards, self._times_ms = cards[order], since_ms[order]
        self._start_ms = int(times_ms[0])
        self._keys = self._cards * self._stride + self._times_ms
        self._before = np.concatenate([[0.0], np.cumsum(amounts[order])])

    @classmethod
    def of(cls, blocks: Iterable[Any]) -> "Sums":
        """Make them of payments in Arrow batches, whose cards are numbered texts."""
        parts = list(blocks)
        cards = [np.array([int(card[1:]) for card in part["card"].to_pylist()], np.int64) for part in parts]
        times = [part["ts"].to_numpy(zero_copy_only=False).astype("datetime64[ms]") for part in parts]
        amounts = [part["amount"].to_numpy() for part in parts]
        return cls(np.concatenate(cards), np.concatenate(times).astype(np.int64), np.concatenate(amounts))

    def places(self, window_ms: int) -> NDArray[np.int64]:
        """Return the places of the events behind a full window. The others return a value for each, in this order."""
        return self._order[self._behind_full(window_ms)]

    def exact(self, window_ms: int) -> NDArray[np.float64]:
        """Return the sum of the window that ends with the event."""
        at = self._behind_full(window_ms)
        return self._sums(at, self._times_ms[at] - window_ms + 1)

    def hopping(self, window_ms: int, hop_ms: int) -> NDArray[np.float64]:
        """Return the sum that the oldest open hopping window has at the event."""
        at = self._behind_full(window_ms)
        times_ms = self._times_ms[at]
        opened_ms = (times_ms + self._start_ms) // hop_ms * hop_ms + hop_ms - window_ms - self._start_ms
        return self._sums(at, np.maximum(opened_ms, times_ms - window_ms + 1))

    def errors(self, window_ms: int, hop_ms: int) -> NDArray[np.float64]:
        """Return by how much of the exact sum the hopping one is too small."""
        return 1.0 - self.hopping(window_ms, hop_ms) / self.exact(window_ms)

    def _behind_full(self, window_ms: int) -> NDArray[np.int64]:
        return np.nonzero(self._times_ms >= window_ms)[0]

    def _sums(self, at: NDArray[np.int64], from_ms: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the sums of each card's amounts from a time on, up to its own event."""
        first = np.searchsorted(self._keys, self._cards[at] * self._stride + np.maximum(from_ms, 0))
        sums: NDArray[np.float64] = self._before[at + 1] - self._before[first]
        return sums


def figures(errors: NDArray[np.float64]) -> Figures:
    """Return the share of wrong values, and how large relative errors are."""
    return {
        "wrong_share": float(np.mean(errors > _RIGHT)),
        "mean_error": float(np.mean(errors)),
        "p99_error": float(np.percentile(errors, 99)),
        "greatest_error": float(np.max(errors)),
        "compared_events": float(len(errors)),
    }
