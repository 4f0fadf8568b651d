"""The limit of events per second of a token."""

_PORTION_S = 0.1


class Rate:
    """A token bucket: it fills with `limit_per_s` events a second, up to `burst` events. It reads no clock.

    `take` gives a caller all its events at once, or none. `queue` gives events in turn. A caller queues at most
    `portion` events and then queues again, so that all callers get about the same share.
    """

    __slots__ = ("_burst", "_level", "_limit_per_s", "_queued", "_since_s", "portion")

    def __init__(self, limit_per_s: int, burst: int, now_s: float) -> None:
        self._limit_per_s, self._burst = limit_per_s, max(limit_per_s, burst)
        self._level, self._since_s = float(self._burst), now_s
        self._queued = 0
        self.portion = max(1, int(limit_per_s * _PORTION_S))

    def take(self, events: int, now_s: float) -> float:
        """Takes events out and returns 0. If there are too few, takes none and returns the seconds to wait.

        More events than the burst can be taken from a full bucket. Later events then wait until it has refilled.
        """
        self._fill(now_s)
        lacking = min(events, self._burst) - self._level
        if lacking > 0:
            return lacking / self._limit_per_s
        self._level -= events
        return 0.0

    def give_back(self, events: int) -> None:
        """Puts back events that were taken and not used."""
        self._level = min(self._burst, self._level + events)

    def queue(self, events: int, now_s: float) -> float:
        """Puts events at the end of the queue and returns the seconds until their turn. Ended with `leave`."""
        self._fill(now_s)
        self._queued += events
        return max(0.0, self._queued - self._level) / self._limit_per_s

    def leave(self, events: int, *, are_sent: bool) -> None:
        """Removes events from the queue. are_sent: True in their turn; False if the caller gave up before."""
        self._queued -= events
        if are_sent:
            # The level may fall below 0 if others took events meanwhile. Later events wait for that.
            self._level -= events

    def _fill(self, now_s: float) -> None:
        # A clock that was set back adds nothing.
        self._level = min(self._burst, self._level + max(0.0, now_s - self._since_s) * self._limit_per_s)
        self._since_s = now_s
