"""Reports the copies of a unit's tasks to all processes of the cluster, in the topic of positions.

The unit's loop calls it in every round. railgun/cluster/FORMAT.md describes the records.
"""

import logging
import math
from collections.abc import Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError

from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.reports import CopyStatus, LeftBehind, UnitReport, encode_report, unit_key
from railgun.host.reading import filled
from railgun.host.task_host import TaskHost
from railgun.messaging.errors import TransportFullError, TransportUnavailableError
from railgun.messaging.transport import Entry, TopicPartition, Transport
from railgun.registry.topics import Topics
from railgun.unit.clock import CLOCK, Clock
from railgun.unit.copies import UnitCopies
from railgun.wire.records import Records

# While nothing changes, this many reports are written in the time after which a silent unit may count as gone.
_IDLE_REPORTS = 5
# All units together write no more than this, since each process reads all reports.
_REPORTS_PER_S, _BYTES_PER_S = 2_000, 1_000_000
# For this long after a change, reports follow one another as fast as they may.
_MOVING_S = 0.2
# Wait at least this long, even when the time is over. A broker that is reachable has answered by then.
_LEAST_S = 0.5

_log = logging.getLogger("railgun.unit")


class Positions:
    """Writes reports: soon after a change, at most every `interval_s`, and at least five times within `takeover_s`.

    If there are very many units, all report less often.

    name: the node and the unit, which each report names.
    copies: tells in which state each copy is.
    """

    def __init__(
        self,
        transport: Transport,
        topics: Topics,
        name: CopyName,
        copies: UnitCopies,
        interval_s: float,
        clock: Clock = CLOCK,
    ) -> None:
        self._clock = clock
        self._transport, self._where = transport, TopicPartition(topics.positions, 0)
        self._name, self._copies = name, copies
        self._interval_s, self._size_bytes = interval_s, 0
        self._reported: list[CopyStatus] | None = None
        self._due_s = self._written_s = self._changed_s = -math.inf
        self._promised_s = 0.0
        self._number = 0
        self._sent: Future[list[int]] | None = None

    def note(self, hosts: Iterable[TaskHost]) -> None:
        """Write a report if something has changed and the interval is over, or if one is due anyway. Other calls cost
        next to nothing.

        A report that could not be delivered, because the broker was away, is written again.
        Raises TransportError if replies could not be delivered, or if the broker refuses a report.
        """
        time_s = self._clock.now()
        # This comparison comes first, because `note` is called after each batch.
        if time_s < self._due_s:
            return
        self._due_s = time_s + self._least_s()
        if self._sent is not None:
            if not self._sent.done():
                return
            try:
                self._sent.result()
            except TransportUnavailableError as error:
                self._say_undelivered(error)
            else:
                self._copies.acknowledge(self._number)
        copies = [self._status(host, last=False) for host in hosts]
        if copies != self._reported:
            self._changed_s = time_s
        elif time_s - self._written_s < self._promised_s:
            return
        self._write(copies)

    def say_last(self, hosts: Iterable[TaskHost], until_s: float) -> None:
        """Report copies that are being closed, and wait until the report is acknowledged.

        until_s: when to stop waiting, in seconds of the monotonic clock.
        Raises TransportError.
        """
        self._settle(until_s)
        self._write([self._status(host, last=True) for host in hosts])
        self._settle(until_s)

    def _say_undelivered(self, error: TransportUnavailableError) -> None:
        """Log that a report was not delivered, and have another one written."""
        _log.warning("how tasks stand cannot be reported for now: %s", error)
        self._reported, self._sent = None, None

    def _least_s(self) -> float:
        """Return the least time between two reports: `interval_s`, or more if there are very many units."""
        share = max(1 / _REPORTS_PER_S, self._size_bytes / _BYTES_PER_S)
        return max(self._interval_s, share * self._copies.units)

    def _settle(self, until_s: float) -> None:
        if self._sent is None:
            return
        try:
            self._sent.result(max(_LEAST_S, until_s - self._clock.now()))
        except FutureTimeoutError:
            raise TransportUnavailableError(
                str(self._where), "how tasks stand is not acknowledged", "Check the broker"
            ) from None

    def _write(self, copies: list[CopyStatus]) -> None:
        self._written_s = time_s = self._clock.now()
        is_moving = time_s - self._changed_s < _MOVING_S
        least_s = self._least_s()
        idle_s = self._copies.takeover_s / _IDLE_REPORTS
        self._promised_s = least_s if is_moving else max(least_s, idle_s)
        number = self._copies.write(self._promised_s)
        report = UnitReport(
            node=self._name.node,
            unit=self._name.unit,
            generation=self._copies.generation,
            number=number,
            interval_ms=max(1, round(self._promised_s * 1000)),
            copies=copies,
            said_ms=self._clock.date_ms(),
        )
        records = Records.of([encode_report(report)])
        self._size_bytes = records.size_bytes
        try:
            self._sent = self._transport.submit([Entry(self._where, records, [unit_key(*self._name)])])
        except TransportFullError:
            return
        except TransportUnavailableError as error:
            # After a report that was not delivered, `submit` asks the broker whether the topic is there.
            self._say_undelivered(error)
            return
        self._reported, self._number = copies, number

    def _status(self, host: TaskHost, *, last: bool) -> CopyStatus:
        state = self._copies.state(host)
        if last and state is not CopyState.FAILED:
            state = CopyState.CLOSED
        return _status(host, state, is_leaving=last or self._copies.is_leaving(host))


def _status(host: TaskHost, state: CopyState, *, is_leaving: bool) -> CopyStatus:
    key, position = host.place.key, host.position
    running = host.task if host.is_running else None
    replied, cut = host.replied(), host.place.cut
    checkpoint, checkpoint_ms = host.durable
    return CopyStatus(
        stream=key.stream,
        created=key.created,
        partitioner=key.partitioner,
        partition=key.partition,
        state=state,
        leaving=is_leaving,
        failure=host.failure or "",
        position=position,
        replied=replied,
        epoch=host.epoch_before(replied),
        checkpoint=checkpoint,
        end=position + host.lag,
        warming=[] if running is None else sorted(running.metrics.warming),
        filled={} if running is None else _rounded(filled(running)),
        history="" if running is None else running.history,
        following=host.following,
        unreadable=0 if running is None else running.unreadable_records,
        lost=host.lost,
        checkpoint_ms=checkpoint_ms,
        replaced=host.replaced,
        left_behind=None
        if host.left_behind is None
        else LeftBehind(
            position=host.left_behind.position,
            epoch=host.left_behind.leader_epoch,
            clock_ms=host.left_behind.clock_ms,
        ),
        gap_ms=None if running is None or running.gap is None else running.gap.gap_ms,
        fetching=host.fetching,
        folder_id=host.folder_id,
        topic_id="" if cut is None or not cut.topic_id else host.topic_id,
    )


def _rounded(shares: dict[str, float]) -> dict[str, float]:
    """Round shares down to steps that people can see, so that not every bit of progress is written. 1 is complete."""
    return {name: math.floor(share * 100) / 100 for name, share in shares.items()}
