"""The protocol by which a backend's streams and metrics are shown, registered, changed and dropped."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from frontend.backend.letters import FoundLetters, LetterRequest
from railgun.catalog.model import StreamDefinition
from railgun.registry.change_log import LoggedChange
from railgun.registry.metric_status import MetricStatus
from railgun.registry.origin import Origin


class StreamCatalogue(Protocol):
    """Streams and metrics. Every coroutine raises ProblemError; other exceptions are defects.

    origin: the caller who asks for a change.
    """

    async def streams(self) -> Sequence[StreamDefinition]:
        """Return all streams, in the order in which they were created."""

    async def create_stream(
        self, definition: StreamDefinition, metrics: Sequence[str], origin: Origin
    ) -> bool:
        """Register a stream with the metrics of queries, in one change. Return False if all of it is registered
        already. A 409 says what differs.
        """

    async def evolve_stream(
        self, stream: str, settings: Mapping[str, Any], origin: Origin
    ) -> StreamDefinition:
        """Add fields, change lateness or retention. Return the new definition. settings: by the keys of definitions."""

    async def drop_stream(self, stream: str, origin: Origin) -> None:
        """Remove a stream with its metrics and events."""

    async def add_metrics(self, stream: str, sql: str, origin: Origin) -> tuple[list[MetricStatus], bool]:
        """Register a query's metrics. Return them, and False if they were registered already.

        New metrics may still be warming: they do not answer until they have read the stream's past.
        """

    async def metrics(self, stream: str) -> list[MetricStatus]:
        """Return a stream's metrics, each with its state."""

    async def drop_metric(self, stream: str, name: str, origin: Origin) -> None:
        """End the metric registered under this name."""

    async def change_log(self, limit: int, before: int | None) -> list[LoggedChange]:
        """Return changes with their authors, as `ChangeLog.newest` does."""

    async def dead_letters(self, stream: str, asked: LetterRequest) -> FoundLetters:
        """Return the newest dead letters of a stream. Without a topic of them this raises ProblemError (409)."""

    async def explain(self, stream: str, sql: str) -> dict[str, Any]:
        """Return the plan of a stream as it would be with a query's metrics. Nothing is registered."""

    async def plan(self, stream: str) -> dict[str, Any]:
        """Return the plan of what is registered of a stream, in the form of `explain`."""

    async def status(self) -> dict[str, Any]:
        """Return the state of streams, metrics and tasks, for people and `railgun status`."""
