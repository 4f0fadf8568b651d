"""The protocol between the HTTP server and its backend: an engine in this process, or a cluster behind a broker."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from frontend.backend.catalogue import StreamCatalogue
from frontend.backend.cluster import ClusterOperations
from frontend.backend.deepenings import DeepeningOperations
from frontend.backend.live_figures import LiveFigures
from frontend.backend.readiness import Readiness
from frontend.samples.samples import Samples
from frontend.scoring.scoring import Scoring
from railgun.telemetry.reading import EngineReading
from railgun.telemetry.recording import Recording


class Backend(Protocol):
    """The parts that answer requests. Each is there from the beginning, and refuses requests (503) before the start.

    A part is never replaced, so its users look it up once.
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

    @property
    def live_figures(self) -> LiveFigures:
        """The figures of `GET /v1/live`."""

    @property
    def samples(self) -> Samples:
        """The last events of each stream, and the masks of what is shown of events."""

    @property
    def topic_prefix(self) -> str | None:
        """How the topics of the cluster begin; None without a broker: no topics are read then."""

    def readiness(self) -> Readiness:
        """Return whether events are taken now."""

    def unanswered(self) -> Sequence[Mapping[str, Any]]:
        """Return the tasks that nobody answers, as JSON: `stream`, `partitioner`, `partition`."""


class ServedBackend(Backend, Protocol):
    """A backend that a server starts, closes and monitors."""

    cancels_start: bool
    """Whether a `start` under way is cancelled when the server stops. Else it is waited for."""

    async def start(self) -> None:
        """Make the backend ready. Raises EngineError."""

    def stop_starting(self) -> None:
        """Have a `start` under way end soon, with CompilingStoppedError if that is possible. Harmless after its end."""

    async def close(self) -> None:
        """Stop, once the events that were taken are durable and a checkpoint is done. Harmless if it is closed."""

    @property
    def recording(self) -> Recording:
        """The notes for monitoring; empty before there is anything to note."""

    def reading(self) -> EngineReading | None:
        """Return the latest state of the tasks in this process; None if there are none here."""
