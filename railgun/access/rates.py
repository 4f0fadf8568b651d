"""How many events per second a token may send."""


class Rate:
    """A bucket that fills with `limit_per_s` events a second up to `burst` events. Reads no clock."""

    __slots__ = ("_burst", "_level", "_limit_per_s", "_since_s")

    def __init__(self, limit_per_s: int, burst: int, now_s: float) -> None:
        self._limit_per_s, self._burst = limit_per_s, max(limit_per_s, burst)
        self._level, self._since_s = float(self._burst), now_s

    def take(self, events: int, now_s: float) -> float:
        """Take events out: 0 where that was possible, else the seconds until it will be.

        More than the burst are taken at once from a full bucket, which later ones then wait for.
        """
        # A clock that was set back adds nothing.
        self._level = min(self._burst, self._level + max(0.0, now_s - self._since_s) * self._limit_per_s)
        self._since_s = now_s
        lacking = min(events, self._burst) - self._level
        if lacking > 0:
            return lacking / self._limit_per_s
        self._level -= events
        return 0.0
