"""The times that a front-end of a cluster waits for a broker and for units. The configuration has them."""

from dataclasses import dataclass

from railgun.cluster.silence import UNANSWERED_S


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Times in seconds. The end of a front-end has a limit, since a call to a broker that is away can take very long.

    over_s: for the end, once no request is under way.
    away_over_s: for the end if the broker is known not to answer.
    lost_over_s: for the end if the clients of the broker have failed.
    silent_s: for a task's report. A task without one for so long does not run. A task without a report of a copy that
        answers is not answered (`unanswered.py`).
    """

    over_s: float = 60.0
    away_over_s: float = 20.0
    lost_over_s: float = 5.0
    silent_s: float = UNANSWERED_S


DEADLINES = Deadlines()
"""The deadlines in use. Tests hand in shorter ones."""
