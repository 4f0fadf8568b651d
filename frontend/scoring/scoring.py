"""The seam between HTTP and what scores: an engine in this process, or one behind a broker."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from frontend.problems import Problem, ProblemError, failed, refusal
from frontend.scoring.scoring_thread import InOrder
from railgun.catalog.model import StreamDefinition
from railgun.engine.status import MetricStatus
from railgun.ingest.intake import JsonText
from railgun.ingest.replies import Reply
from railgun.ingest.value_queries import KeyValues, ValueRequest
from railgun.registry.change_log import LoggedChange
from railgun.registry.origin import Origin

Answer = Reply | Problem


@dataclass(frozen=True, slots=True)
class StreamView:
    """What the scoring route needs to know of a stream. metrics: by name, in the order added."""

    definition: StreamDefinition
    metrics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Readiness:
    """ready: events are taken.  reason: why not, for people.  failed: it stopped, and stays so until started again."""

    ready: bool
    reason: str = ""
    failed: bool = False


def unavailable(standing: Readiness) -> ProblemError:
    """The problem of a request that comes while the backend is not ready."""
    return failed(standing.reason) if standing.failed else refusal(503, standing.reason)


READY = Readiness(True)
STOPPING = Readiness(False, "stopping")


class Backend(Protocol):
    """Everything the HTTP application asks for. Every coroutine raises ProblemError, and nothing else on purpose."""

    def readiness(self) -> Readiness:
        """Whether it can take events now."""

    def unanswered(self) -> Sequence[Mapping[str, Any]]:
        """The tasks that nobody answers, as JSON: `stream`, `partitioner`, `partition`."""

    def view(self, stream: str) -> StreamView:
        """A stream as the scoring route needs it."""

    async def score(
        self,
        stream: str,
        texts: Sequence[JsonText],
        *,
        metrics: Sequence[str] | None = None,
        timeout_ms: int,
        takes_partial: bool = False,
        reply: bool = True,
        in_order: InOrder | None = None,
    ) -> list[Answer | None]:
        """An answer for each event, in order, once it is durable. texts: JSON, not looked at yet.

        An event that is refused (400, 422), or not answered in time (504), has its own problem in its place and harms
        no other.  metrics: only these, which the stream has; None: all.  takes_partial: an event that only some of its
        partitioners have answered in time gets their results.  reply: False: events that were taken get None in their
        place.  in_order: of the request that these are a part of, scored after the parts before.
        """

    def submit(
        self,
        stream: str,
        text: JsonText,
        *,
        metrics: Sequence[str] | None = None,
        timeout_ms: int,
        takes_partial: bool = False,
        tell: Callable[[Answer | BaseException | None], None],
    ) -> None:
        """`score` of one event, for who waits in no coroutine.

        tell: called once in the event loop, later, with the answer or the exception; never where this raises.
        """

    async def values(self, stream: str, request: ValueRequest, timeout_ms: int) -> list[KeyValues]:
        """The metrics of keys as they are now. Raises QueryRefusedError too."""

    def refused(self, stream: str, status: int) -> None:
        """Told of a request for a stream that was refused as a whole, for monitoring."""

    async def streams(self) -> list[StreamDefinition]:
        """All streams, in the order created."""

    async def create_stream(self, definition: StreamDefinition, origin: Origin) -> bool:
        """Register a stream; False where the same is registered already. A 409 says what differs.

        origin: who asks for this change; so too of the others.
        """

    async def evolve_stream(
        self, stream: str, settings: Mapping[str, Any], origin: Origin
    ) -> StreamDefinition:
        """Add fields, change lateness or retention, by the keys of definitions; what it is then."""

    async def drop_stream(self, stream: str, origin: Origin) -> None:
        """Remove a stream with its metrics and events."""

    async def add_metrics(self, stream: str, sql: str, origin: Origin) -> tuple[list[MetricStatus], bool]:
        """Register a query's metrics; False where the same are registered already. They may be warming still."""

    async def metrics(self, stream: str) -> list[MetricStatus]:
        """A stream's metrics and how they stand."""

    async def drop_metric(self, stream: str, name: str, origin: Origin) -> None:
        """End a metric."""

    async def change_log(self, limit: int, before: int | None) -> list[LoggedChange]:
        """Who changed what: see `ChangeLog.newest`."""

    async def explain(self, stream: str, sql: str) -> dict[str, Any]:
        """The plan of a stream as it would be with a query's metrics; nothing is registered."""

    async def begin_deepening(self, stream: str, cut_ms: int | None) -> dict[str, Any]:
        """Let older history be built; how that stands. A 409 says why it cannot be."""

    async def install_deepening(self, stream: str, origin: Origin) -> dict[str, Any]:
        """Let what was built take over, in its own time; how that stands."""

    async def deepening(self, stream: str) -> dict[str, Any]:
        """How the live backfill of a stream stands."""

    async def give_up_deepening(self, stream: str) -> None:
        """Let go of what there is of it."""

    async def status(self) -> dict[str, Any]:
        """Streams, metrics and tasks, for people and `railgun status`."""

    async def cluster(self) -> dict[str, Any]:
        """Nodes, the copies of each task, and who leads."""

    async def what_if(self, change: str) -> dict[str, Any]:
        """What a change of the cluster would move."""

    async def drain(self, node: str, *, fewer_copies: bool) -> dict[str, Any]:
        """Empty a node; how it stands. A 409 says why that is refused."""

    async def undrain(self, node: str) -> dict[str, Any]:
        """Use a node again; how it stands."""

    async def accept_cut(self, stream: str, partitioner: str, partition: int) -> dict[str, Any]:
        """Have a task go on without records that its log has lost; which these are. A 409 says why that is refused."""

    async def close(self) -> None:
        """Stop, after what was taken is durable and a checkpoint; harmless when done already."""
