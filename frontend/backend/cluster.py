"""The protocol for a backend's cluster: its nodes, its copies of tasks, and orders to the node that leads it."""

from typing import Any, Protocol


class ClusterOperations(Protocol):
    """A cluster. Every coroutine raises ProblemError; other exceptions are defects."""

    async def overview(self) -> dict[str, Any]:
        """Return the nodes, the copies of each task, and the node that leads."""

    async def what_if(self, change: str) -> dict[str, Any]:
        """Return which copies a change of the cluster would move."""

    async def drain(self, node: str, *, fewer_copies: bool) -> dict[str, Any]:
        """Have a node emptied. Return its state. A 409 says why that is refused."""

    async def undrain(self, node: str) -> dict[str, Any]:
        """Have a node used again. Return its state."""

    async def accept_cut(self, stream: str, partitioner: str, partition: int) -> dict[str, Any]:
        """Have a task go on without records that its log has lost. Return which records these are.

        A 409 says why that is refused, or which order is needed besides.
        """

    async def accept_gap(
        self, stream: str, partitioner: str, partition: int, *, node: str, is_asked: bool
    ) -> dict[str, Any]:
        """Have a task go on behind a gap of its log. Return which records are lost.

        node: that of the state to go on with; empty: that of the newest one.
        is_asked: only return what would be lost.
        A 409 says why that is refused.
        """
