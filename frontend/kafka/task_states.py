"""The state of a cluster's tasks, as their units report it on the topic of positions.

It tells whether metrics answer yet, and gives a summary of the cluster: nodes, units, tasks, and what waits.
"""

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from frontend.exchange.pending_table import PendingTable
from frontend.kafka.deadlines import DEADLINES
from frontend.kafka.followed_plan import FollowedPlan
from frontend.kafka.unanswered import listed
from railgun.catalog.catalog import Catalog, StreamEntry
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyState
from railgun.cluster.overview import heard_copies, shown_copy
from railgun.cluster.report_table import ReportedCopy, ReportTable
from railgun.messaging.errors import TransportError, TransportUnavailableError
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.tail import Tail, TailThread, each_record, logged
from railgun.messaging.transport import TopicPartition
from railgun.registry.cluster_topics import OVERWRITTEN
from railgun.registry.topics import Topics


def at_a_glance(
    tasks: Sequence[Mapping[str, Any]],
    unanswered: Sequence[TaskKey],
    waiting: PendingTable,
    log_retention_ms: int | None,
    weak_topics: Mapping[str, str],
) -> dict[str, Any]:
    """What `TaskStates.tasks` says of all tasks, added up, which of them nobody answers, and what this front-end waits
    for.

    log_retention_ms: of new streams; where it is set, tasks that no other node has cannot be rebuilt wholly.
    weak_topics: topics of which one broker's loss could lose records, each with the reason.
    """
    states = Counter(str(task["state"]).partition(":")[0] for task in tasks)
    units: dict[str, set[int]] = {}
    for task in tasks:
        for copy in task["copies"]:
            units.setdefault(copy["node"], set()).add(copy["unit"])
    return {
        "nodes": [{"node": node, "units": sorted(own)} for node, own in sorted(units.items())],
        "tasks": dict(sorted(states.items())),
        "unanswered": listed(unanswered),
        "lag": sum(task["lag"] for task in tasks),
        "unreadable_records": sum(task["unreadable_records"] for task in tasks),
        "log_retention_ms": log_retention_ms,
        "weak_topics": dict(weak_topics),
        "pending_events": waiting.events,
        "pending_oldest_s": round(waiting.oldest_s(), 3),
    }


_WAIT_S, _AWAY_S = 0.1, 0.5
# For a question that somebody waits for: it is not long known that a broker is away.
_ANSWER_S = 2.0
NOT_RUN = ("unknown", "stopped")
"""States of tasks that no unit runs."""
MetricName = tuple[str, str, int]
"""Stream, name, the place of its `add`."""

_log = logging.getLogger("railgun.frontend")


class TaskStates:
    """Reads what units report, and the plan, in a thread of its own.

    is_away: whether the broker is known not to answer: it is not asked then.
    silent_s: a task of which nothing is heard for so long does not run.
    reports: the newest report of every copy.
    plan: the plan. What is wrong with its topic does not keep reports from being read, nor the other way round.
    """

    def __init__(
        self,
        transport: KafkaTransport,
        topics: Topics,
        is_away: Callable[[], bool] = lambda: False,
        silent_s: float = DEADLINES.silent_s,
    ) -> None:
        self._transport, self._topics, self._is_away = transport, topics, is_away
        self._silent_s = silent_s
        reports, assignment = TopicPartition(topics.positions, 0), TopicPartition(topics.assignment, 0)
        self.reports = ReportTable()
        # Of metrics that are not known to answer: how far their tasks must have come to know of them.
        self._due: dict[MetricName, dict[TaskKey, int]] = {}
        self._warm: set[MetricName] = set()
        for where in (reports, assignment):
            transport.create_topic(where.topic, 1, OVERWRITTEN)
        self._tail = Tail(transport, {reports: each_record(self._take, logged(_log))})
        self._tail.begin()
        self._begun_at = transport.end_offset(*reports)
        self.plan = FollowedPlan(transport, assignment)
        self._thread = TailThread(
            self._look,
            "positions",
            lambda error: _log.warning("positions cannot be read for now: %s", error),
            _AWAY_S,
        )
        self._thread.start()

    def close(self) -> None:
        """Read no more."""
        self._thread.close()

    def warming(self, entry: StreamEntry) -> set[str]:
        """The metrics of a stream that some task does not answer yet, or is not known to, as where the broker is away.
        Raises TransportError."""
        stream, found, asks = entry.stream, set(), not self._is_away()
        for name, add in entry.metrics.items():
            metric = (stream.name, name, add.place)
            if metric in self._warm:
                continue
            if metric not in self._due:
                ends = self._ends(entry, add.metric.home) if asks else None
                if ends is None:
                    # Nor would it answer for the next one.
                    asks = False
                    found.add(name)
                    continue
                self._due[metric] = ends
            if all(self._answers(name, task, end) for task, end in self._due[metric].items()):
                self._warm.add(metric)
                del self._due[metric]
            else:
                found.add(name)
        return found

    def forget(self, catalog: Catalog) -> None:
        """Forget what is not registered any more."""
        living = {
            (name, metric, add.place)
            for name, entry in catalog.streams.items()
            for metric, add in entry.metrics.items()
        }
        self._warm &= living
        self._due = {metric: due for metric, due in self._due.items() if metric in living}

    def tasks(self, entry: StreamEntry) -> Iterable[dict[str, Any]]:
        """How each task of a stream stands, for people; those that nobody runs too: `unknown` or `stopped`, with what
        their logs hold by now."""
        stream, ends = entry.stream, _LogEnds(self._transport, answers=not self._is_away())
        for key in entry.task_keys:
            heard = self._heard(key)
            status, state = None if heard is None else heard.status, self._state(heard)
            position, end = (0, 0) if status is None else (status.position, status.end)
            if state in NOT_RUN:
                end = max(end, ends.of(self._topics.tasks(key.stream, key.partitioner), key.partition))
            yield {
                "stream": stream.name,
                "partitioner": key.partitioner,
                "partition": key.partition,
                "position": position,
                "checkpoint": 0 if status is None else status.checkpoint,
                "lag": max(0, end - position),
                "node": None if heard is None else heard.copy.node,
                "unit": None if heard is None else heard.copy.unit,
                "state": state,
                "unreadable_records": 0 if status is None else status.unreadable,
                "copies": self._copies(key),
            }

    def filled(self, entry: StreamEntry, name: str) -> float:
        """How much of its history a metric has read, 0 to 1, in the task that is least far."""
        add, stream = entry.metrics[name], entry.stream
        home, due = add.metric.home, self._due.get((stream.name, name, add.place), {})
        shares = []
        for partition in range(stream.partitions_of(home)):
            task = TaskKey(stream.name, entry.created, home, partition)
            heard = self._heard(task)
            if task in due and self._answers(name, task, due[task]):
                # One that answers already says nothing more of what it had to read.
                shares.append(1.0)
            else:
                shares.append(0.0 if heard is None else heard.status.filled.get(name, 0.0))
        return min(shares)

    def _copies(self, task: TaskKey) -> list[dict[str, Any]]:
        """The copies of a task that are heard, in the words that nodes use among themselves."""
        since_s = time.monotonic() - self._silent_s
        heard = heard_copies(self.reports, self.plan.policy, task, lambda each: each.reported_s > since_s)
        return [
            shown_copy(copy, heard[copy])
            for copy in sorted(heard)
            if heard[copy].status.state is not CopyState.CLOSED
        ]

    def _heard(self, task: TaskKey) -> ReportedCopy | None:
        return self.reports.newest(task, time.monotonic() - self._silent_s)

    def _state(self, heard: ReportedCopy | None) -> str:
        if heard is None:
            return "unknown"
        state, is_silent = heard.status.state, heard.reported_s <= time.monotonic() - self._silent_s
        if is_silent and state is not CopyState.CLOSED:
            return "unknown"
        return f"failed: {heard.status.failure}" if state is CopyState.FAILED else state.shown

    def _ends(self, entry: StreamEntry, home: str) -> dict[TaskKey, int] | None:
        """Where the logs of a home's tasks end: their `add` records lie before that. None: the broker is away."""
        name = entry.stream.name
        topic = self._topics.tasks(name, home)
        try:
            return {
                TaskKey(name, entry.created, home, partition): self._transport.end_offset(
                    topic, partition, _ANSWER_S
                )
                for partition in range(entry.stream.partitions_of(home))
            }
        except TransportUnavailableError:
            return None

    def _answers(self, metric: str, task: TaskKey, end: int) -> bool:
        heard = self._heard(task)
        return heard is not None and heard.status.position >= end and metric not in heard.status.warming

    def _look(self) -> None:
        try:
            self._tail.look(_WAIT_S)
        finally:
            self.plan.look()

    def _take(self, offset: int, record: bytes) -> None:
        # What was written before this front-end began may be of any time.
        self.reports.take(record, time.monotonic() if offset >= self._begun_at else -math.inf)


class _LogEnds:
    """Where logs end, as far as the broker answers."""

    def __init__(self, transport: KafkaTransport, *, answers: bool) -> None:
        self._transport, self._answers = transport, answers

    def of(self, topic: str, partition: int) -> int:
        """0 where that is not known."""
        if self._answers:
            try:
                return self._transport.end_offset(topic, partition, _ANSWER_S)
            except TransportError:
                # Nor would the next one be known: it may take long to find that out.
                self._answers = False
        return 0
