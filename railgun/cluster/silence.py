"""The thresholds of silence for those who watch a cluster. `hearing` has those for a copy that may have to answer.

The thresholds differ on purpose: who answers is decided within seconds, what moves copies waits for longer.
"""

from typing import Final

INTERVALS: Final = 5
"""A unit announces when its next report follows. EXPIRES_S, ADVANCES_S and NODE_HEARD_S are as long as so many of these
intervals, if that is longer."""

# --- reports of a copy ---------------------------------------------------------------------------------------

EXPIRES_S: Final = 5.0
"""A copy that was not heard for this long is not counted as one that could answer."""

ADVANCES_S: Final = 10.0
"""A copy that has got no nearer to the end of its log for this long does not advance. One that the plan names has as
long until it is heard."""

WELL_AGAIN: Final = 2
"""A copy may be unwell for this many times `replace_after_s` while its node comes and goes. Then it is lost."""

UNANSWERED_S: Final = 15.0
"""A task of which nothing was heard for this long is shown as not running. It is called unanswered if no copy of it was
heard answering for so long. A unit of a live node that has said nothing for so long is warned of."""

PLANNED_HEARD_S: Final = 5.0
"""Before a job changes a stream's tasks, each copy that the plan names has to be heard within this time."""

OFFER_KNOWN_S: Final = 30.0
"""A copy that has caught up knows of what a job offers within this time: units look for it twice a second."""

PUT_ASIDE_S: Final = 120.0
"""Once a job has asked for it, each task has exported the events that it accepted within this time. If not, its node
does not run, or has another data folder."""

REPLIES_STUCK_S: Final = 10.0
"""A front-end whose partition has taken no reply for this long, while the broker takes a unit's reports, counts as gone
for that unit."""

REPLIES_UNUSED_S: Final = 24 * 3_600.0
"""The topic of replies of a front-end that has got no reply for this long is deleted. One that lives makes it again."""

DONORS_HEARD_S: Final = 10.0
"""A unit that has heard all others for this long has heard of every copy that could give its data. Before that a copy
that lacks data waits: after a power cut all nodes come back within a while."""

# --- reports of a unit and of a node ---------------------------------------------------------------------------

NODE_HEARD_S: Final = 5.0
"""A node counts as heard for this long after a report of one of its units. If no unit at all was heard for so long, the
reader was away, or the broker: nobody could be heard."""

STARTS_S: Final = 60.0
"""A node that has come within this time is starting: nobody is warned that units of it say nothing."""

SERVES_S: Final = 60.0
"""A node has said where it serves data, or why it does not, within this time of its start."""

ENDED_LATELY_S: Final = 600
"""A node tells how often its units have ended by themselves within this time."""

UNSTEADY_BEGINNINGS: Final = 3
"""A unit that began so many times within `replace_after_s` is unsteady."""

VAIN_BEGINNINGS: Final = 2
"""If a unit began so many times since a copy's last checkpoint, the copy's checkpoints fail. One that is killed begins
once."""

STEADY_S: Final = 600.0
"""A unit that has lived for this long is unsteady no more."""

FORGOTTEN_S: Final = 24 * 3_600.0
"""What was heard of a unit or a copy is forgotten after this silence, unless the plan names it."""

FORGETS_S: Final = 3_600.0
"""How often a process that reads reports forgets."""

CLOSES_S: Final = 30.0
"""A unit that is stopped in order has said within this time that its copies are closed. Copies that leave answer for
`leave_s`; then it writes no report while it waits for replies and takes its last checkpoints (`acknowledged_s`)."""

# --- heartbeats of a unit to its node --------------------------------------------------------------------------

UNIT_SILENT_S: Final = 5.0
"""A unit whose node has heard no heartbeat for longer than this does not count as ready."""

# --- what a node says of itself --------------------------------------------------------------------------------

JOINS_S: Final = 3.0
"""A node that has said its record is a member of the group within this time. Otherwise it has died."""

MEMBER_LATE_S: Final = 2.0
"""The broker may notice so much later than `session_timeout_s` that a member of the group is gone."""

SAID_AGAIN_S: Final = 600.0
"""A node that lives says its record again at least this often: it may have been taken for gone just as it came back."""

GONE_MS: Final = 24 * 3_600_000
"""A node's record that is older than this does not count, unless the node is a member of the group."""
