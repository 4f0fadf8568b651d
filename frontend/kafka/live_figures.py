"""The figures of a cluster for `GET /v1/live`: what this front-end counts and hears, and the last look at the nodes."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from frontend.access.masks import Masks
from frontend.backend.live_figures import (
    ClusterStanding,
    InputStanding,
    StreamStanding,
    Waiting,
    Warming,
    Way,
)
from frontend.kafka.parts import Parts
from frontend.kafka.running_cluster import RunningCluster
from frontend.problems import ProblemError
from railgun.catalog.catalog import StreamEntry
from railgun.catalog.task_key import TaskKey
from railgun.messaging.errors import TransportError
from railgun.registry.errors import EngineError
from railgun.registry.metric_status import filled_with_derived
from railgun.telemetry.recording import Recording, StreamRecord
from railgun.wording import gap_text

# How much of what has happened lately is shown.
_LATELY_MAX = 3


@dataclass(frozen=True, slots=True)
class _Looked:
    """What a look at the cluster has found.

    streams: by name and place of creation, the warming metrics of each stream, and the gaps in its tasks' logs: no
        event in such a gap is later than the time in ms.
    """

    cluster: ClusterStanding
    streams: Mapping[tuple[str, int], tuple[Warming, Mapping[TaskKey, int]]] = field(default_factory=dict)


class KafkaLiveFigures:
    """`LiveFigures` of a cluster.

    recording: the counts of the events that came over HTTP.  masks: what of streams nobody is shown.
    """

    has_cluster = True

    def __init__(self, running: RunningCluster, name: str, recording: Recording, masks: Masks) -> None:
        self._running, self.name, self._recording, self._masks = running, name, recording, masks
        self._looked = _Looked(ClusterStanding(()))

    def records(self) -> Iterable[tuple[str, Way, StreamRecord]]:
        found = [(name, Way.HTTP, record) for name, record in self._recording.streams()]
        parts = self._running.parts
        inputs = {} if parts is None else parts.inputs.running
        return found + [(name, Way.TOPICS, each.record) for name, each in inputs.items()]

    def streams(self) -> dict[str, StreamStanding]:
        parts = self._running.parts
        if parts is None:
            return {}
        inputs, unanswered = parts.inputs.running, parts.unanswered.by_stream()
        found = {}
        for name, entry in parts.intakes.now.catalog.streams.items():
            warming, gaps = self._looked.streams.get((name, entry.created), (None, {}))
            warnings = [*_unread_topics(parts, name), *_in_words(gaps, self._masks.of(entry).covers_time)]
            found[name] = StreamStanding(
                len(entry.names), warming, name in inputs, unanswered.get(name, 0), warnings
            )
        return found

    def entries(self) -> dict[str, StreamEntry]:
        parts = self._running.parts
        return {} if parts is None else parts.intakes.now.catalog.streams

    def waiting(self) -> Waiting:
        parts = self._running.parts
        if parts is None:
            return Waiting(0, 0, 0.0)
        table = parts.exchange.pending_table
        return Waiting(table.events, table.size_bytes, table.oldest_s())

    def inputs(self) -> dict[str, InputStanding]:
        parts = self._running.parts
        inputs = {} if parts is None else parts.inputs.running
        return {
            name: InputStanding(sum(each.lags().values()), each.records_read) for name, each in inputs.items()
        }

    def cluster(self) -> ClusterStanding:
        parts = self._running.parts
        unanswered = [] if parts is None else parts.unanswered.tasks()
        return replace(self._looked.cluster, unanswered=[str(task) for task in unanswered])

    def look_at_cluster(self) -> None:
        """Look at the nodes, the copies and the metrics. What was seen last stays if that fails, with the reason."""
        parts = self._running.parts
        if parts is None:
            return
        try:
            self._looked = _looked(parts)
        except (TransportError, EngineError, ProblemError) as error:
            failure = f"the cluster cannot be looked at: {error}"
            self._looked = replace(self._looked, cluster=replace(self._looked.cluster, warnings=(failure,)))

    def measure_disk(self) -> None:
        """Return None: a front-end keeps nothing on a disk."""


def _unread_topics(parts: Parts, stream: str) -> list[str]:
    """Return a warning of each input topic that a stream names and that is not read.

    The reason is left out: it may be an error of the broker, which not everybody who may read the stream is told.
    """
    return [f"the topic {topic} is not read: /v1/status says why" for topic in parts.inputs.not_read(stream)]


def _in_words(gaps: Mapping[TaskKey, int], covers_time: bool) -> list[str]:
    """Return a warning of each gap. covers_time: whether the time of events is masked, so that it is not told."""
    return [
        gap_text(task.partitioner, task.partition, None if covers_time else gap_ms)
        for task, gap_ms in gaps.items()
    ]


def _looked(parts: Parts) -> _Looked:
    """Look at a cluster. Raises TransportError, EngineError and ProblemError."""
    shown, at_s = parts.cluster_overview(_LATELY_MAX), time.monotonic()
    streams, states = {}, parts.task_states
    for name, entry in parts.intakes.now.catalog.streams.items():
        shares = {metric: states.filled(entry, metric) for metric in states.warming(entry)}
        filled = filled_with_derived(entry.registered, shares)
        streams[name, entry.created] = Warming(filled, at_s), states.gaps(entry)
    return _Looked(_standing(shown, at_s), streams)


def _standing(shown: Mapping[str, Any], at_s: float) -> ClusterStanding:
    """Return the numbers of an overview of a cluster, from `overview`."""
    states = Counter(copy["state"] or "unheard" for task in shown["tasks"] for copy in task["copies"])
    return ClusterStanding(
        unanswered=(),
        at_s=at_s,
        leader=shown["leader"],
        wanted=shown["copies"],
        moves=shown["moves"],
        nodes=dict(Counter(node["state"] for node in shown["nodes"])),
        copies=dict(states),
        warnings=shown["warnings"],
        lately=shown["lately"],
    )
