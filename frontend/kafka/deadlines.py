"""The times that a front-end of a cluster waits for a broker and for units. The configuration has them."""

from dataclasses import dataclass

from railgun.cluster.silence import UNANSWERED_S


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Times in seconds. The end of a front-end has a limit, since a call to a broker that is away can take very long.

    over_s: the limit of the end, once no request is under way.
    away_over_s: the limit of the end if the broker is known not to answer.
    lost_over_s: the limit of the end if the clients of the broker have failed.
    silent_s: a task without a report for this long does not run. A task for which no answering copy has reported for
        this long is not answered (`unanswered.py`).
    """

    over_s: float = 60.0
    away_over_s: float = 20.0
    lost_over_s: float = 5.0
    silent_s: float = UNANSWERED_S


DEADLINES = Deadlines()
"""The deadlines in use. Tests hand in shorter ones."""
