"""The seam between the HTTP server and what scores: an engine in this process, or a cluster behind a broker."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from frontend.backend.catalogue import StreamCatalogue
from frontend.backend.cluster import ClusterOperations
from frontend.backend.deepenings import DeepeningOperations
from frontend.backend.readiness import Readiness
from frontend.scoring.scoring import Scoring
from railgun.telemetry.reading import DiskReading, EngineReading
from railgun.telemetry.recording import Recording


class Backend(Protocol):
    """The parts that answer requests. Each is there from the beginning, and refuses (503) before the start.

    Whoever needs a part looks it up once.
    """

    @property
    def scoring(self) -> Scoring:
        """The part that scores events and answers value queries."""

    @property
    def catalogue(self) -> StreamCatalogue:
        """The streams and metrics."""

    @property
    def cluster(self) -> ClusterOperations | None:
        """The nodes that process events; None if this process does."""

    @property
    def deepenings(self) -> DeepeningOperations | None:
        """The deepenings of streams; None if the units of a cluster are asked for them."""

    def readiness(self) -> Readiness:
        """Return whether events are taken now."""

    def unanswered(self) -> Sequence[Mapping[str, Any]]:
        """Return the tasks that nobody answers, as JSON: `stream`, `partitioner`, `partition`."""


class ServedBackend(Backend, Protocol):
    """A backend that a server starts and closes, and that says for monitoring how it stands."""

    cancels_start: bool
    """Whether a `start` under way is cancelled when the server stops. Else it is waited for."""

    async def start(self) -> None:
        """Make it ready. Raises EngineError."""

    def stop_starting(self) -> None:
        """Have a `start` under way end soon, with CompilingStoppedError where it can. Harmless when it is over."""

    async def close(self) -> None:
        """Stop, after what was taken is durable and a checkpoint; harmless when done already."""

    @property
    def recording(self) -> Recording:
        """The notes for monitoring; empty before there is anything to note."""

    def reading(self) -> EngineReading | None:
        """Return how tasks in this process stood lately; None if there are none here."""

    def disk(self) -> DiskReading | None:
        """Return what lies on the disk now; None if nothing does. Takes as long as there are files."""
