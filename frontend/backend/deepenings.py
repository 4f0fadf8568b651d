"""Deepenings: live streams get older history than their logs have."""

from typing import Any, Protocol

from railgun.registry.origin import Origin


class DeepeningOperations(Protocol):
    """A stream has one at most. Every coroutine raises ProblemError, and nothing else on purpose."""

    async def begin(self, stream: str, cut_ms: int | None) -> dict[str, Any]:
        """Let older history be built; return how the deepening stands. A 409 says why it cannot be."""

    async def install(self, stream: str, origin: Origin) -> dict[str, Any]:
        """Let what was built take over, in its own time; return how the deepening stands. origin: who asks."""

    async def standing(self, stream: str) -> dict[str, Any]:
        """Return how the deepening of a stream stands."""

    async def give_up(self, stream: str) -> None:
        """Let go of what there is of a deepening."""
