"""Follows the plan of the cluster for a front-end. The thread of `TaskStates` reads it from the broker."""

import logging
import math
import time

from railgun.cluster.plan import Drain, Plan
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import PlanReader
from railgun.messaging.errors import (
    OffsetOutOfRangeError,
    TransportClosedError,
    TransportError,
)
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.tail import Tail, each_record, leave_out
from railgun.messaging.transport import TopicPartition

# The plan is read within this time, unless the thread lags or has ended.
_PLAN_S, _PLAN_LOOK_S = 10.0, 0.01
# After an error the next look follows that much later: a look that fails may take long, and holds up the thread.
_AWAY_S = 0.5

_log = logging.getLogger("railgun.frontend")


class PlanNotReadError(TransportError):
    """The broker answers, and the thread of this front-end has not read the plan in time."""

    def __init__(self, where: TopicPartition) -> None:
        reason = f"the plan was not read within {_PLAN_S:g} s"
        super().__init__(str(where), reason, "See the log of this front-end")


class FollowedPlan:
    """The plan as one thread reads it by `look`. Any thread may ask for it.

    where: the topic of the plan. One that has lost its end, or was made again, is read from its beginning.
    Raises TransportError.
    """

    def __init__(self, transport: KafkaTransport, where: TopicPartition) -> None:
        self._transport, self._where = transport, where
        self._refused: dict[str, Drain] = {}
        self._reading = self._begun()
        self._fails, self._due_s = False, -math.inf

    @property
    def policy(self) -> ClusterPolicy | None:
        """The policy of the plan that was read last; None before the first plan."""
        return self._reading[1].policy

    @property
    def known(self) -> Plan:
        """The plan that was read last."""
        return self._reading[1].plan

    def refusal(self, node: str, asked_ms: int) -> str:
        """Return why an order to empty a node was refused; empty if none was since `asked_ms`.

        Whoever gave a refused order withdraws it, so the plan shows a refusal for a moment only.
        """
        refused = self._refused.get(node)
        return "" if refused is None or refused.asked_ms < asked_ms else refused.refusal

    def look(self) -> None:
        """Take new plans, without waiting. If none can be read, the reason is logged once and not raised.

        Raises TransportClosedError.
        """
        if time.monotonic() < self._due_s:
            return
        try:
            try:
                self._reading[0].look(0.0)
            except OffsetOutOfRangeError:
                self._reading = self._begun()
                raise
        except TransportClosedError:
            raise
        except TransportError as error:
            if not self._fails:
                _log.warning("the plan cannot be read for now: %s", error)
            self._fails, self._due_s = True, time.monotonic() + _AWAY_S
        else:
            self._fails = False

    def newest(self) -> Plan:
        """Return the newest plan that was written before this is called.

        Raises PlanNotReadError, and TransportError.
        """
        end = self._end()
        until_s = time.monotonic() + _PLAN_S
        while True:
            tail, reader = self._reading
            at = tail.offsets[self._where]
            # A log that ends before `end` has lost its end: the thread begins again.
            if at == end or end < at <= self._end():
                return reader.plan
            if time.monotonic() > until_s:
                raise PlanNotReadError(self._where)
            time.sleep(_PLAN_LOOK_S)

    def _end(self) -> int:
        return self._transport.end_offset(*self._where)

    def _begun(self) -> tuple[Tail, PlanReader]:
        """Return a new tail and reader for the topic, from its beginning. Plans of a deleted topic do not count."""
        reader = PlanReader()
        # Nodes log what cannot be read.
        taker = each_record(lambda _, record: self._take(reader, record), leave_out)
        tail = Tail(self._transport, {self._where: taker})
        tail.begin()
        return tail, reader

    def _take(self, reader: PlanReader, record: bytes) -> None:
        if reader.take(record):
            self._refused |= {node: drain for node, drain in reader.drains.items() if drain.refusal}
