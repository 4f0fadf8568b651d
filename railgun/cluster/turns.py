"""Tells when a copy of a task that another one took over from may answer again, so that the two do not alternate.

`Answering` has one `Turns`. A turn is the time in which one of the copies answers.
"""

import math

from railgun.cluster.hearing import Timing


class Turns:
    """Follows who took over from one copy. One thread uses it; times are seconds of the monotonic clock.

    is_passed: whether another copy took over while this one answered, and did not leave.
    began_s: when this copy last began to answer.
    """

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self.began_s = -math.inf
        self._holds = self.is_passed = False
        self._passed_s, self._wait_s = -math.inf, 0.0

    def begin(self, now_s: float) -> None:
        """Note that this copy begins to answer."""
        self.began_s, self._holds, self.is_passed = now_s, True, False

    def hear_begin(self, now_s: float) -> None:
        """Note that another copy was heard beginning to answer. Not called while this copy leaves."""
        # Two copies that begin at once have not heard each other. The one that comes later in the plan stops.
        if not self._holds or now_s - self.began_s < self._timing.takeover_s:
            return
        self._holds, self.is_passed = False, True
        is_forgiven = now_s - self._passed_s > self._timing.forgiven_s
        doubled_s = min(2 * self._wait_s, self._timing.back_most_s)
        self._wait_s = self._timing.back_s if is_forgiven else doubled_s
        self._passed_s = now_s

    def forgive(self) -> None:
        """Forget that others took over: the plan has changed."""
        self.is_passed, self._passed_s = False, -math.inf

    def waits(self, now_s: float, reached_s: float) -> bool:
        """Whether this copy leaves activity to the one that took over.

        reached_s: since when this copy has been at its limit.
        """
        return (
            self.is_passed
            and now_s - self._passed_s <= self._timing.forgiven_s
            and now_s - max(self._passed_s, reached_s) < self._wait_s
        )
