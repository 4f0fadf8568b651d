"""What each peer has to do: sum, count and average per card over sliding windows, by the load on each key."""

from dataclasses import dataclass, replace

HOUR_MS = 3_600_000
_HELD_EVENTS, MEASURED_EVENTS = 200_000, 100_000
_EVENTS_FLOOR = 2_000
_ONE = (HOUR_MS,)
_TEN = tuple(HOUR_MS // 10 * n for n in range(1, 11))


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of work.

    windows_ms: of the metrics; the longest holds `held` events, over all keys.  per_key: how many of them a key has, on
    average.  measured: events of one run, at most.
    """

    name: str
    windows_ms: tuple[int, ...]
    per_key: int
    held: int = _HELD_EVENTS
    measured: int = MEASURED_EVENTS

    @property
    def keys(self) -> int:
        """The number of cards, all equally frequent."""
        return self.held // self.per_key

    @property
    def rate_per_s(self) -> float:
        """The number of events in a second of event time."""
        return self.held * 1000 / max(self.windows_ms)

    def scaled(self, factor: float) -> "Work":
        """Return this work with another number of keys and of events. The load on a key stays."""
        return replace(
            self,
            held=max(_EVENTS_FLOOR, int(self.held * factor)),
            measured=max(_EVENTS_FLOOR, int(self.measured * factor)),
        )


WORKS: dict[str, Work] = {
    work.name: work
    for work in (
        Work("one_10", _ONE, 10),
        Work("one_100", _ONE, 100),
        Work("ten_10", _TEN, 10),
        Work("ten_100", _TEN, 100),
    )
}
