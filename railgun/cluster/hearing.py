"""Tells whether a unit (a process that runs tasks) has read the reports of other units completely and in time.

`UnitCopies` has one `Hearing`. All reports are in one partition. So when a unit reads a report of its own, it has read
every report that was written before.
"""

import math
from collections import deque
from dataclasses import dataclass


@dataclass(slots=True)
class Timing:
    """When silence means something. All times are in seconds.

    takeover_s: a copy that has not been heard for this long does not answer any more. A unit follows
        the plan in it.
    patience_s: the same, if it is longer, after reports were delayed for longer than `takeover_s`: the broker was away,
        for all.
    ahead_s: a copy that has been behind another for this long stops answering.
    leave_s: a copy that leaves answers for at most this long.
    deaf_s: a unit whose own reports are written and have not come back for this long cannot hear others.
    back_s: a copy that another one took over from takes activity back after it has been at its limit for this long. The
        time is doubled each time.
    back_most_s: it is doubled up to this.
    forgiven_s: a take-over is forgotten after this time.
    warm_wait_s: a metric begins to answer at the latest this long after the answering copy has filled it, even if other
        copies still fill it.
    """

    takeover_s: float = 1.0
    patience_s: float = 3.0
    ahead_s: float = 0.2
    leave_s: float = 10.0
    deaf_s: float = 15.0
    back_s: float = 10.0
    back_most_s: float = 300.0
    forgiven_s: float = 3600.0
    warm_wait_s: float = 600.0

    def stuck_s(self, interval_s: float) -> float:
        """Return for how long the replies of a copy that reports at an interval may make no progress. Then it does not
        count as answering.
        """
        return 5 * max(self.takeover_s, interval_s)

    @property
    def pause_s(self) -> float:
        """A thread that has not looked for this long was paused."""
        return self.takeover_s / 2

    def silence_s(self, interval_s: float) -> float:
        """Return how long a copy that reports at an interval may be silent."""
        return max(self.takeover_s, 5 * interval_s)


class Hearing:
    """Follows a unit's own reports from writing to reading. One thread uses it.

    now_s: a time of the monotonic clock, in seconds, like all times here.
    """

    def __init__(self, timing: Timing, now_s: float) -> None:
        self._timing = timing
        self._written: deque[tuple[int, float]] = deque()
        self._number = 0
        self._looked_s = self._began_s = self._returned_s = now_s
        self._complete_s = math.inf
        self._interval_s = 0.0
        # Since when a report has been acknowledged that has not come back, and when one was acknowledged last.
        self._missing_since_s, self._acknowledged_s = math.inf, -math.inf
        self._reached_since_s = math.inf

    def write(self, now_s: float, interval_s: float) -> int:
        """Return the number of a report that is being written.

        interval_s: the next one follows within this time.
        """
        self._number += 1
        self._interval_s = interval_s
        self._written.append((self._number, now_s))
        return self._number

    def acknowledge(self, number: int, now_s: float) -> None:
        """Note that a report of this unit is in the log, so that it has to come back."""
        if now_s - self._acknowledged_s > self._pause_s:
            # The broker was away, so earlier reports could not come back either.
            self._missing_since_s = math.inf
            self._reached_since_s = now_s
        self._acknowledged_s = now_s
        if self._written and self._written[0][0] <= number:
            self._missing_since_s = min(self._missing_since_s, now_s)

    @property
    def _pause_s(self) -> float:
        """If no report is acknowledged for this long, the broker is away."""
        return max(self._timing.patience_s, 2 * self._interval_s)

    def reached_since_s(self, now_s: float) -> float:
        """Return since when reports of this unit have been acknowledged without a pause; infinity if none is now."""
        return self._reached_since_s if now_s - self._acknowledged_s <= self._pause_s else math.inf

    def is_deaf(self, now_s: float) -> bool:
        """Whether the unit's own reports do not come back, though they are in the log: so others cannot be heard.

        Only the time counts in which reports were acknowledged: while the broker is away nothing comes back.
        """
        return self._missed_s(now_s) > self._timing.deaf_s

    def misses_itself(self, now_s: float) -> bool:
        """Whether the unit's own reports have not come back for so long that it would call another unit silent. It may
        not hear other units either. Time in which the broker is away does not count.
        """
        silence_s = self._timing.silence_s(self._interval_s)
        return self._missed_s(now_s) > max(silence_s, self._timing.patience_s)

    def _missed_s(self, now_s: float) -> float:
        """Return for how long written reports of this unit have not come back.

        Time without acknowledgements does not count.
        """
        is_looking = now_s - self._looked_s <= self._timing.pause_s
        return self._acknowledged_s - self._missing_since_s if is_looking else 0.0

    def read(self, number: int, now_s: float) -> None:
        """Note that a report of this unit has been read."""
        self.look(now_s)
        self._missing_since_s = math.inf
        while self._written and self._written[0][0] <= number:
            written_s = self._written.popleft()[1]
            self._returned_s = now_s
            if written_s < self._began_s:
                continue
            if now_s - written_s > self._timing.takeover_s:
                # While the broker was away no unit could be heard. A copy that answers gets time to report.
                self._complete_s = now_s + max(0.0, self._timing.patience_s - self._timing.takeover_s)
            elif self._complete_s == math.inf:
                self._complete_s = now_s

    def look(self, now_s: float) -> None:
        """Notice a pause of the reading thread, which calls this each time it reads, whatever it finds.

        After a pause the unit has to read up to a report that it writes afterwards.
        """
        if now_s - self._looked_s > self._timing.pause_s:
            self._began_s, self._complete_s = now_s, math.inf
            self._missing_since_s = math.inf
        self._looked_s = now_s

    def is_complete(self, now_s: float) -> bool:
        """Whether everything has been read that was written before the unit started, or before its last pause."""
        return self._complete_s != math.inf and now_s - self._looked_s <= self._timing.pause_s

    def silence_since_s(self, now_s: float) -> float:
        """Return since when the unit would have heard every other unit; infinity if it does not hear at present."""
        # Less than the silence that means something: if its reports stop coming back, others must not seem silent.
        may_take_s = max(self._timing.takeover_s / 2, 2 * self._interval_s)
        if not self.is_complete(now_s) or now_s - self._returned_s > may_take_s:
            return math.inf
        return self._complete_s
