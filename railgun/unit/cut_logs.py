"""Finds logs that have lost records which copies had replied to, as by an unclean election of a broker.

A copy would wait for ever at the end of such a log, below what others have replied to.
"""

from collections.abc import Iterable, Iterator

from railgun.host.task_host import TaskHost
from railgun.messaging.errors import TransportUnavailableError
from railgun.messaging.transport import TopicPartition, Transport
from railgun.task.errors import LogGapError
from railgun.unit.clock import Clock

# A report may come before the records that it is about. So a broker is asked twice for the end, with so long between.
CUT_S = 5.0


class CutLogs:
    """One thread uses it."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport, self._clock = transport, clock
        # Of logs that seem too short: when the broker was asked last, and how often it said so.
        self._short: dict[TopicPartition, tuple[float, int]] = {}

    def find(self, hosts: Iterable[TaskHost]) -> Iterator[tuple[TaskHost, LogGapError]]:
        """Yield the hosts of logs that have lost records, each with the error. Raises TransportError,
        but not if the broker is away.
        """
        now_s = self._clock.now()
        limited = [host for host in hosts if host.limit is not None]
        short = {host.place.where: host for host in limited if _is_beyond(host, host.position + host.lag)}
        self._short = {where: self._short.get(where, (now_s, 0)) for where in short}
        for where, (asked_s, count) in list(self._short.items()):
            if now_s < asked_s + CUT_S:
                continue
            try:
                host, end = short[where], self._transport.end_offset(*where)
            except TransportUnavailableError:
                # The broker is asked again in the next round.
                return
            self._short[where] = now_s, count + 1 if _is_beyond(host, end) else 0
            if self._short[where][1] > 1:
                reason = (
                    f"other copies replied to what was before offset {host.limit}, and the log ends at {end}: the "
                    "broker has lost records; restore its topic, or make the stream anew"
                )
                yield host, LogGapError(str(where), reason)


def _is_beyond(host: TaskHost, end: int) -> bool:
    """Whether the copy has to follow others to an offset that its log does not have."""
    return host.limit is not None and host.limit > end
