"""The protocol for deepenings. A deepening gives a live stream older history than its log has."""

from typing import Any, Protocol

from railgun.registry.origin import Origin


class DeepeningOperations(Protocol):
    """Deepenings, at most one for each stream. Every coroutine raises ProblemError; other exceptions are defects."""

    async def begin(self, stream: str, cut_ms: int | None) -> dict[str, Any]:
        """Let older history be built. Return the state of the deepening. A 409 says why it cannot be built."""

    async def install(self, stream: str, origin: Origin) -> dict[str, Any]:
        """Begin to let the tasks that were built take over. Return the state of the deepening. origin: the caller."""

    async def standing(self, stream: str) -> dict[str, Any]:
        """Return the state of the deepening of a stream."""

    async def give_up(self, stream: str) -> None:
        """Give up a deepening, and delete what was built of it."""
