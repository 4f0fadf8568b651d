"""Measures for how long a unit has been silent, for `ChildProcess`, which decides by that whether the unit hangs."""

from railgun.cluster.silence import UNIT_SILENT_S

LOOK_MAX_S = 1.0
"""Between two looks no more silence than this counts: the watcher was halted itself, perhaps together with the unit."""


class Liveness:
    """The silence of one run of a unit's process. One thread calls `look`; any thread may read the attributes.

    silent_s: how long the unit has been silent, in seconds. It counts from the first heartbeat on: before that the unit
        starts, or waits for the broker, which may take any time.
    """

    def __init__(self) -> None:
        self.silent_s = 0.0
        self._looked_s, self._heartbeats = 0.0, 0

    @property
    def is_silent(self) -> bool:
        """Whether the unit has been silent for so long that it does not count as ready."""
        return self.silent_s > UNIT_SILENT_S

    def look(self, now_s: float, heartbeats: int) -> None:
        """Take in how many heartbeats have been heard by now. now_s: the time by the monotonic clock."""
        passed_s, self._looked_s = min(now_s - self._looked_s, LOOK_MAX_S), now_s
        if heartbeats != self._heartbeats:
            self._heartbeats, self.silent_s = heartbeats, 0.0
        elif heartbeats:
            self.silent_s += passed_s
