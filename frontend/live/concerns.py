"""Says in words what somebody should see to of the process that answers. The thresholds are those of
`config/alerts.yml`. An alert waits until something has lasted; here it is shown at once, and of input topics after a
minute.
"""

import math
from collections.abc import Mapping

from frontend.backend.live_figures import Waiting
from railgun.telemetry.reading import DiskReading
from railgun.wording import span_text

DISK_FREE_BYTES = 2e9
CERTIFICATE_S = 7 * 86_400.0
WAITED_S = 5.0
NEEDED_S = 300.0

_SLOW = "see whether a unit is away or behind, or the broker is slow"


def of_disk(disk: DiskReading | None) -> list[str]:
    """Return a warning of a disk that is nearly full."""
    if disk is None or disk.free_bytes >= DISK_FREE_BYTES:
        return []
    free = f"{disk.free_bytes / 1e6:,.0f} MB are free"
    remedy = "shorten the retention of streams, or enlarge the disk"
    return [f"the disk is nearly full, {free}, and a full one stops this server: {remedy}"]


def of_waiting(waiting: Waiting | None) -> list[str]:
    """Return a warning of events that wait too long for their answers."""
    if waiting is None or waiting.oldest_s <= WAITED_S:
        return []
    return [f"an event has waited for {_span(waiting.oldest_s)} to be answered: {_SLOW}"]


def of_inputs(needed_s: Mapping[str, float]) -> list[str]:
    """Return a warning of each stream that needs too long for what waits in its input topics, the longest first."""
    late = sorted((each for each in needed_s.items() if each[1] > NEEDED_S), key=lambda each: -each[1])
    return [
        f"records wait in the input topics of {stream}, and "
        + ("none is read" if math.isinf(needed) else f"at its pace it needs {_span(needed)} for them")
        + f": {_SLOW}"
        for stream, needed in late
    ]


def _span(seconds: float) -> str:
    return span_text(round(1_000 * seconds))
