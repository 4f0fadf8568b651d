"""The protocol of what `GET /v1/live` reads of a backend, beside the counts of its streams' events."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from railgun.catalog.catalog import StreamEntry
from railgun.telemetry.reading import DiskReading
from railgun.telemetry.recording import StreamRecord

LISTED_MAX = 100
"""How many metrics, tasks or warnings a part of an answer lists at most. Their number is beside the list."""


class Way(StrEnum):
    """A way by which events come in."""

    HTTP = "http"
    TOPICS = "topics"


@dataclass(frozen=True, slots=True)
class Warming:
    """The metrics of a stream that do not answer yet.

    filled: how much of its past each has read, from 0 to 1, by name.
    at_s: when that was so, by time.monotonic.
    """

    filled: Mapping[str, float]
    at_s: float


@dataclass(frozen=True, slots=True)
class StreamStanding:
    """How a stream stands.

    metrics: how many metrics are registered.
    warming: None if that is not known yet.
    has_topics: whether this process reads input topics of the stream.
    unanswered: how many tasks nobody answers.
    warnings: what somebody should see to. They name nothing of another stream, and tell nothing that a mask covers.
    """

    metrics: int
    warming: Warming | None
    has_topics: bool = False
    unanswered: int = 0
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """The events that wait for answers of a cluster. oldest_s: how long the oldest of them has waited."""

    events: int
    size_bytes: int
    oldest_s: float


@dataclass(frozen=True, slots=True)
class InputStanding:
    """How far the input topics of a stream are read, of the partitions that this process has.

    waiting: how many records wait to be read, as far as is known.
    read: how many were read since the input began.
    """

    waiting: int
    read: int


@dataclass(frozen=True, slots=True)
class ClusterStanding:
    """How a cluster stands.

    unanswered: the tasks that nobody answers, as `stream/partitioner/partition`.
    at_s: when the rest was looked at, by time.monotonic; None if it was not looked at yet.
    leader: the node that leads; None if none does.
    wanted: how many copies of each task are wanted.
    moves: how many moves of copies are left to do.
    nodes: how many nodes there are, by state.
    copies: how many copies there are, by state; `unheard` are those that do not report.
    warnings: what somebody should see to.
    lately: what this front-end has noted, as `GET /v1/cluster` has it, with the newest entries; None if it has not.
    """

    unanswered: Sequence[str]
    at_s: float | None = None
    leader: str | None = None
    wanted: int = 0
    moves: int = 0
    nodes: Mapping[str, int] = field(default_factory=dict)
    copies: Mapping[str, int] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    lately: Mapping[str, Any] | None = None


class LiveFigures(Protocol):
    """The figures of a backend. Methods that do not say otherwise read memory alone, and are called in the event loop.

    name: the name of this front-end.
    has_cluster: whether other processes do the work.
    """

    name: str
    has_cluster: bool

    def records(self) -> Iterable[tuple[str, Way, StreamRecord]]:
        """Return what was counted of each stream, by the way that its events came."""

    def streams(self) -> Mapping[str, StreamStanding]:
        """Return how each registered stream stands."""

    def entries(self) -> Mapping[str, StreamEntry]:
        """Return the registered streams. After a change of one it is another object."""

    def waiting(self) -> Waiting | None:
        """Return what waits for answers of a cluster; None if there is no cluster."""

    def inputs(self) -> Mapping[str, InputStanding]:
        """Return how far input topics are read, by stream."""

    def cluster(self) -> ClusterStanding | None:
        """Return how the cluster stood when it was looked at last; None if there is no cluster."""

    def look_at_cluster(self) -> None:
        """Look at the cluster for `cluster` and `streams`. It blocks, and raises nothing."""

    def measure_disk(self) -> DiskReading | None:
        """Return what is on the disk; None if nothing is. It blocks."""
