"""How long a front-end of a cluster waits for a broker and for units."""

from dataclasses import dataclass

from railgun.cluster.silence import UNANSWERED_S


@dataclass(frozen=True, slots=True)
class Deadlines:
    """In seconds. A call to a broker that is away can take longer than there is.

    over_s: for the end, once no request is under way.  away_over_s: for the end where the broker is known not to
    answer.  lost_over_s: for the end where it cannot answer.  silent_s: to hear of a task; one of which nothing is
    heard for so long does not run, and one of which no copy is heard answering for so long is not answered
    (`unanswered.py`).
    """

    over_s: float = 60.0
    away_over_s: float = 20.0
    lost_over_s: float = 5.0
    silent_s: float = UNANSWERED_S


DEADLINES = Deadlines()
"""The ones in use; tests hand in shorter ones."""
