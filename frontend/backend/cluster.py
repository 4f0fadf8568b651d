"""The protocol for a backend's cluster: its nodes, its copies of tasks, and orders to the node that leads it."""

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class GapOrder:
    """An order to accept a gap of a task's log.

    node: that of the state to go on with; empty: that of the newest one.
    agreed: the first record that is lost and the first that is left, as the operator was told; None: whatever they are.
    is_asked: only say what would be lost.
    """

    node: str = ""
    agreed: tuple[int, int] | None = None
    is_asked: bool = False


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
        self, stream: str, partitioner: str, partition: int, order: GapOrder
    ) -> dict[str, Any]:
        """Have a task go on behind a gap of its log. Return which records are lost.

        A 409 says why that is refused.
        """
