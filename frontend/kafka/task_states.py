"""The state of a cluster's tasks, as their units (the processes that run tasks) report it on the topic of positions.

It tells whether metrics answer yet, and gives a summary of the cluster: nodes, units, tasks, and what waits.
"""

import logging
import math
import threading
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
from railgun.cluster.log_room import LogRoom, log_warning
from railgun.cluster.overview import heard_copies, shown_copy
from railgun.cluster.report_table import ReportedCopy, ReportTable
from railgun.cluster.silence import FORGETS_S
from railgun.messaging.errors import TransportError, TransportUnavailableError
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.tail import Tail, TailThread, each_record, logged
from railgun.messaging.transport import TopicPartition
from railgun.registry.cluster_topics import OVERWRITTEN
from railgun.registry.topics import Topics


def at_a_glance(
    copies: Iterable[Mapping[str, Any]],
    tasks: Sequence[Mapping[str, Any]],
    unanswered: Sequence[TaskKey],
    waiting: PendingTable,
    log_retention_ms: int | None,
    weak_topics: Mapping[str, str],
    brokers: int | None,
    logs: Mapping[TaskKey, LogRoom],
    away_s: float | None = None,
) -> dict[str, Any]:
    """Return the summary of a cluster for `railgun status`.

    copies: those of all tasks that have reported lately, as `tasks` has them.
    tasks: the states of all tasks, from `TaskStates.tasks`.
    unanswered: the tasks that no copy answers.
    waiting: the requests that wait for answers.
    log_retention_ms: the retention of the logs of new streams that do not say it themselves; None: for ever.
    weak_topics: topics of which one broker's loss could lose records, each with the reason.
    brokers: how many live; None if that is not known.
    logs: the logs of tasks, as far as they are known.
    away_s: how long ago the broker answered last, in seconds, while it does not answer; None while it does.
    """
    nodes: dict[str, set[int]] = {}
    for copy in copies:
        nodes.setdefault(copy["node"], set()).add(copy["unit"])
    states = Counter(str(task["state"]).partition(":")[0] for task in tasks)
    return {
        "nodes": [{"node": node, "units": sorted(own)} for node, own in sorted(nodes.items())],
        "tasks": dict(sorted(states.items())),
        "unanswered": listed(unanswered),
        "lag": sum(task["lag"] for task in tasks),
        "unreadable_records": sum(task["unreadable_records"] for task in tasks),
        "log_retention_ms": log_retention_ms,
        "log_warning": log_warning(logs),
        "weak_topics": dict(weak_topics),
        "brokers": brokers,
        "broker_away_s": None if away_s is None else round(away_s, 1),
        "pending_events": waiting.events,
        "pending_oldest_s": round(waiting.oldest_s(), 3),
    }


_WAIT_S, _AWAY_S = 0.1, 0.5
# The time for a call that a caller waits for: the broker may be away without this being known yet.
_ANSWER_S = 2.0
NOT_RUN = ("unknown", "stopped")
"""States of tasks that no unit runs."""
MetricName = tuple[str, str, int]
"""A metric's stream, its name, and the place in the catalogue at which it was added."""

_log = logging.getLogger("railgun.frontend")


class TaskStates:
    """Reads the reports of units, and the plan, in a thread of its own.

    is_away: returns whether the broker is known not to answer. It is not asked then.
    silent_s: a task that is not heard for this long does not run.
    reports: the newest report of every copy.
    plan: the plan. A fault of its topic does not stop the reading of reports, nor the reverse.
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
        self.reports, self._reports_at, self._forgot_s = ReportTable(), reports, time.monotonic()
        # The metrics that are not known to answer, with the offset from which on each task knows of the metric. `_warm`
        # are those that answer everywhere.
        self._due: dict[MetricName, dict[TaskKey, int]] = {}
        self._warm: set[MetricName] = set()
        self._due_lock = threading.Lock()
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

    @property
    def has_read_earlier(self) -> bool:
        """Whether the reports that were there at the start have been read."""
        return self._tail.has_reached({self._reports_at: self._begun_at})

    def close(self) -> None:
        """Read no more."""
        self._thread.close()

    def warming(self, entry: StreamEntry) -> set[str]:
        """Return the metrics of a stream that are not known to be answered by all their tasks. Raises TransportError.

        While the broker is away, a new metric is among them.
        """
        with self._due_lock:
            return self._warming(entry)

    def forget(self, catalog: Catalog) -> None:
        """Forget metrics that are not registered any more."""
        living = {
            (name, metric, add.place)
            for name, entry in catalog.streams.items()
            for metric, add in entry.metrics.items()
        }
        with self._due_lock:
            self._warm &= living
            self._due = {metric: due for metric, due in self._due.items() if metric in living}

    def tasks(self, entry: StreamEntry, logs: Mapping[TaskKey, LogRoom]) -> Iterable[dict[str, Any]]:
        """Yield the state of each task of a stream, for people. A task that no unit runs is `unknown` or `stopped`, and
        its lag counts to the present end of its log.

        logs: the logs of tasks, as far as they are known.
        """
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
                "gap_ms": None if status is None else status.gap_ms,
                "copies": self._copies(key),
                "log": logs[key].shown() if key in logs else None,
            }

    def filled(self, entry: StreamEntry, name: str) -> float:
        """Return the share of its history that a metric has read, 0 to 1, in the task that has read least."""
        add, stream = entry.metrics[name], entry.stream
        home, due = add.metric.home, self._due.get((stream.name, name, add.place), {})
        shares = []
        for partition in range(stream.partitions_of(home)):
            task = TaskKey(stream.name, entry.created, home, partition)
            heard = self._heard(task)
            if task in due and self._answers(name, task, due[task]):
                # A task that answers a metric does not report its share any more.
                shares.append(1.0)
            else:
                shares.append(0.0 if heard is None else heard.status.filled.get(name, 0.0))
        return min(shares)

    def gaps(self, entry: StreamEntry) -> dict[TaskKey, int]:
        """Return which tasks of a stream lack events of a gap in their logs. No such event is later than the time."""
        found = {}
        for task in entry.task_keys:
            heard = self._heard(task)
            if heard is not None and heard.status.gap_ms is not None:
                found[task] = heard.status.gap_ms
        return found

    def _warming(self, entry: StreamEntry) -> set[str]:
        stream, found, asks = entry.stream, set(), not self._is_away()
        ends_of: dict[str, dict[TaskKey, int] | None] = {}
        for name, add in entry.metrics.items():
            metric, home = (stream.name, name, add.place), add.metric.home
            if metric in self._warm:
                continue
            if metric not in self._due:
                if asks and home not in ends_of:
                    # One look serves all metrics of a partitioner.
                    ends_of[home] = self._ends(entry, home)
                ends = ends_of[home] if asks else None
                if ends is None:
                    # The broker would not answer for the next metric either.
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

    def copies(self, catalog: Catalog, ago_s: float) -> list[dict[str, Any]]:
        """Return the copies of all tasks that had reported lately so many seconds ago."""
        return [copy for key in catalog.task_keys for copy in self._copies(key, ago_s)]

    def _copies(self, task: TaskKey, ago_s: float = 0.0) -> list[dict[str, Any]]:
        """Return the copies of a task that have reported lately, in the words that nodes use among themselves.

        ago_s: lately is before so many seconds.
        """
        since_s = time.monotonic() - ago_s - self._silent_s
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
        """Return the ends of the logs of a partitioner's tasks; None if the broker is away.

        The records that add metrics lie before these ends.
        """
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
        now_s = time.monotonic()
        if now_s - self._forgot_s >= FORGETS_S:
            self._forgot_s = now_s
            if (plan := self.plan.known).epoch:
                self.reports.forget_silent(plan.units, now_s)

    def _take(self, offset: int, record: bytes) -> None:
        # Reports from before this front-end's start may be old.
        self.reports.take(record, time.monotonic() if offset >= self._begun_at else -math.inf)


class _LogEnds:
    """Looks up where logs end, until the broker does not answer."""

    def __init__(self, transport: KafkaTransport, *, answers: bool) -> None:
        self._transport, self._answers = transport, answers

    def of(self, topic: str, partition: int) -> int:
        """Return the end of a log; 0 if it is not known."""
        if self._answers:
            try:
                return self._transport.end_offset(topic, partition, _ANSWER_S)
            except TransportError:
                # The next call would fail too, and might take long.
                self._answers = False
        return 0
