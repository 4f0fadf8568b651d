"""Finds logs that have lost records to which copies had replied, as after an unclean leader election of a broker.

`UnitLoop` asks it in every round, and stops the tasks of these logs. Otherwise a copy of the task would wait for ever
at the end of such a log, below what others have replied to; or it would go on with records that came into the places of
those that were lost.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from railgun.host.lanes import QUESTION_S
from railgun.host.task_host import TaskHost
from railgun.messaging.errors import TransportUnavailableError
from railgun.messaging.transport import Fetched, TopicPartition, Transport
from railgun.task.errors import LogCutError
from railgun.unit.clock import Clock
from reservoir.executor import Job, Lane

# A report may come before the records that it is about. So the broker is asked twice for the end, this long apart.
CUT_S = 5.0


@dataclass(slots=True)
class _Short:
    """A log that seems too short.

    host: runs the task of the log.
    since_s: when the log first seemed too short; later, when the broker was last asked.
    count: how many answers in a row have said that it is too short.
    asking: the request for its end; None between requests.
    limit: the offset that the copy had to come to when the request began.
    """

    host: TaskHost
    since_s: float
    count: int = 0
    asking: Job[int] | None = None
    limit: int = 0


class CutLogs:
    """The logs that seem too short. `UnitLoop` makes it; one thread uses it.

    lane: the lane in which the broker is asked.
    """

    def __init__(self, transport: Transport, lane: Lane, clock: Clock) -> None:
        self._transport, self._lane, self._clock = transport, lane, clock
        self._short: dict[TopicPartition, _Short] = {}

    def find(self, hosts: Iterable[TaskHost]) -> Iterator[tuple[TaskHost, LogCutError]]:
        """Yield the hosts of logs that have lost records, each with the error.

        Raises TransportError, but not if the broker is away.
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
        """Follow the logs that end below the limit, and yield those whose ends the broker has told twice."""
        now_s = self._clock.now()
        before, self._short = self._short, {}
        for host in limited:
            where = host.place.where
            if host.limit is None or host.limit.offset <= host.position + host.lag:
                continue
            known = before.get(where)
            self._short[where] = known if known and known.host is host else _Short(host, now_s)
        for where, each in self._short.items():
            if each.asking is None:
                if now_s >= each.since_s + CUT_S:
                    self._ask(where, each)
            elif each.asking.done():
                end = self._answer(each, now_s)
                if each.count > 1:
                    yield each.host, _cut(each.host, f"the log ends at {end}")

    def _ask(self, where: TopicPartition, each: _Short) -> None:
        """Ask for the end of a log, outside the loop: if the partition has no leader, no answer comes."""
        assert each.host.limit is not None
        each.limit = each.host.limit.offset
        each.asking = self._lane.submit(lambda: self._transport.end_offset(*where, QUESTION_S))

    def _answer(self, each: _Short, now_s: float) -> int:
        """Take in the answer, and return the end; -1 if the broker is away. The broker is asked again after `CUT_S`."""
        assert each.asking is not None
        asking, each.asking, each.since_s = each.asking, None, now_s
        try:
            end = asking.result()
        except TransportUnavailableError:
            return -1
        # The present limit may be higher: records that have come since then are behind this end, and are no loss.
        each.count = each.count + 1 if each.limit > end else 0
        return end


def check_limit(host: TaskHost, fetched: Fetched) -> None:
    """Raise LogCutError if a batch for a silent copy has come into the place of records that others replied to."""
    limit = host.limit
    if limit is not None and fetched.leader_epoch > limit.epoch >= 0 and host.position < limit.offset:
        raise _cut(host, f"the records from offset {host.position} on are not those that they replied to")


def _cut(host: TaskHost, found: str) -> LogCutError:
    """Return the error for a log that has lost records. found: what shows that."""
    limit = host.limit
    assert limit is not None
    reason = f"other copies replied to what was before offset {limit.offset}, and {found}: the broker has lost records"
    return LogCutError(str(host.place.identity), reason, limit.offset, limit.epoch)


def _is_at_another_record(host: TaskHost) -> bool:
    """Whether the copy has come as far as others, but the record before its position is another one than theirs."""
    limit = host.limit
    if limit is None or limit.epoch < 0 or host.position != limit.offset:
        return False
    return host.epoch_before(limit.offset) not in (-1, limit.epoch)
