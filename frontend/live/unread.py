"""Finds streams whose input topics are read more slowly than records come in."""

import math
from collections import deque
from collections.abc import Mapping

from frontend.backend.live_figures import InputStanding

PACE_S = 60.0
"""For so long records must have waited without a break. The pace is that of this time."""


class Unread:
    """How far input topics were read through the last minute, tick by tick. Used in one thread."""

    def __init__(self) -> None:
        # By stream, since records wait: when it was looked, and how the topics stood.
        self._kept: dict[str, deque[tuple[float, InputStanding]]] = {}

    def tick(self, standings: Mapping[str, InputStanding], now_s: float) -> None:
        """Note how the topics of streams stand. To be called about once a second."""
        before, self._kept = self._kept, {}
        for stream, standing in standings.items():
            kept = before.get(stream, deque())
            # An input that has begun again counts from 0.
            if not standing.waiting or (kept and standing.read < kept[-1][1].read):
                kept.clear()
            kept.append((now_s, standing))
            while kept[0][0] < now_s - PACE_S and kept[1][0] <= now_s - PACE_S:
                kept.popleft()
            self._kept[stream] = kept

    def needed_s(self) -> dict[str, float]:
        """Return how long streams need at their pace for the records that wait, in seconds; infinity if none is read.

        Streams are left out of which records have not waited for a minute yet, and those of which none is read while
        no more come: what is left then may be the marks of transactions, which nobody reads.
        """
        found = {}
        for stream, kept in self._kept.items():
            (since_s, first), (now_s, last) = kept[0], kept[-1]
            if now_s - since_s >= PACE_S:
                read = last.read - first.read
                if read:
                    found[stream] = last.waiting * (now_s - since_s) / read
                elif last.waiting > first.waiting:
                    found[stream] = math.inf
        return found
