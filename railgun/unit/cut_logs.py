"""Finds logs that have lost records which copies had replied to, as by an unclean election of a broker.

A copy would wait for ever at the end of such a log, below what others have replied to; or it would go on with records
that came into the places of those that were lost.
"""

from collections.abc import Iterable, Iterator

from railgun.catalog.task_key import TaskKey
from railgun.host.task_host import TaskHost
from railgun.messaging.errors import TransportUnavailableError
from railgun.messaging.transport import Fetched, TopicPartition, Transport
from railgun.task.errors import LogCutError
from railgun.unit.clock import Clock

# A report may come before the records that it is about. So a broker is asked twice for the end, with so long between.
CUT_S = 5.0


class CutLogs:
    """One thread uses it."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport, self._clock = transport, clock
        # Of logs that seem too short: when the broker was asked last, and how often it said so.
        self._short: dict[TopicPartition, tuple[float, int]] = {}

    def find(self, hosts: Iterable[TaskHost]) -> Iterator[tuple[TaskHost, LogCutError]]:
        """Yield the hosts of logs that have lost records, each with the error. Raises TransportError,
        but not if the broker is away.
        """
        limited = [host for host in hosts if host.limit is not None]
        for host in limited:
            if _is_at_another_record(host):
                yield (
                    host,
                    _cut(
                        host, f"the record before offset {host.position} is not the one that they replied to"
                    ),
                )
        yield from self._find_short(limited)

    def _find_short(self, limited: Iterable[TaskHost]) -> Iterator[tuple[TaskHost, LogCutError]]:
        now_s = self._clock.now()
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
                yield host, _cut(host, f"the log ends at {end}")


def check_limit(host: TaskHost, fetched: Fetched) -> None:
    """Raise LogCutError if a batch for a silent copy has come into the place of records that others replied to."""
    limit = host.limit
    if limit is not None and fetched.leader_epoch > limit.epoch >= 0 and host.position < limit.offset:
        raise _cut(host, f"the records from offset {host.position} on are not those that they replied to")


def with_remedy(key: TaskKey, error: LogCutError) -> LogCutError:
    """Return the error with what an operator can do."""
    text = f"{error.message}. `railgun cluster accept-cut {key}` has the task go on without them"
    return LogCutError(error.place, text, error.position, error.leader_epoch)


def _cut(host: TaskHost, found: str) -> LogCutError:
    limit = host.limit
    assert limit is not None
    reason = f"other copies replied to what was before offset {limit.offset}, and {found}: the broker has lost records"
    return LogCutError(str(host.place.identity), reason, limit.offset, limit.epoch)


def _is_beyond(host: TaskHost, end: int) -> bool:
    """Whether the copy has to follow others to an offset that its log does not have."""
    return host.limit is not None and host.limit.offset > end


def _is_at_another_record(host: TaskHost) -> bool:
    """Whether the copy has come as far as others, and not by the same records."""
    limit = host.limit
    if limit is None or limit.epoch < 0 or host.position != limit.offset:
        return False
    return host.epoch_before(limit.offset) not in (-1, limit.epoch)
