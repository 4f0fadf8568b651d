"""How many events per second a token may send."""

_PORTION_S = 0.1


class Rate:
    """A bucket that fills with `limit_per_s` events a second up to `burst` events. Reads no clock.

    Whoever takes has their events at once or not at all. Whoever queues has them in turn, and queues again for more:
    `portion` events at most, so that takers and each of those in the queue get about as much as another.
    """

    __slots__ = ("_burst", "_level", "_limit_per_s", "_queued", "_since_s", "portion")

    def __init__(self, limit_per_s: int, burst: int, now_s: float) -> None:
        self._limit_per_s, self._burst = limit_per_s, max(limit_per_s, burst)
        self._level, self._since_s = float(self._burst), now_s
        self._queued = 0
        self.portion = max(1, int(limit_per_s * _PORTION_S))

    def take(self, events: int, now_s: float) -> float:
        """Take events out: 0 where that was possible, else the seconds until it will be; nothing is taken then.

        More than the burst are taken at once from a full bucket, which later ones then wait for.
        """
        self._fill(now_s)
        lacking = min(events, self._burst) - self._level
        if lacking > 0:
            return lacking / self._limit_per_s
        self._level -= events
        return 0.0

    def give_back(self, events: int) -> None:
        """Put back what was taken and not used."""
        self._level = min(self._burst, self._level + events)

    def queue(self, events: int, now_s: float) -> float:
        """Have events wait behind those that wait already: the seconds until their turn. `leave` follows."""
        self._fill(now_s)
        self._queued += events
        return max(0.0, self._queued - self._level) / self._limit_per_s

    def leave(self, events: int, *, are_sent: bool) -> None:
        """Take events out of the queue: in their turn, when they are sent, or before."""
        self._queued -= events
        if are_sent:
            # What was taken meanwhile is lacking now: later ones wait for it.
            self._level -= events

    def _fill(self, now_s: float) -> None:
        # A clock that was set back adds nothing.
        self._level = min(self._burst, self._level + max(0.0, now_s - self._since_s) * self._limit_per_s)
        self._since_s = now_s
