"""The cluster of a backend: its nodes and copies, and orders to whoever leads it."""

from typing import Any, Protocol


class ClusterOperations(Protocol):
    """Every coroutine raises ProblemError, and nothing else on purpose."""

    async def overview(self) -> dict[str, Any]:
        """Return the nodes, the copies of each task, and who leads."""

    async def what_if(self, change: str) -> dict[str, Any]:
        """Return what a change of the cluster would move."""

    async def drain(self, node: str, *, fewer_copies: bool) -> dict[str, Any]:
        """Empty a node; return how it stands. A 409 says why that is refused."""

    async def undrain(self, node: str) -> dict[str, Any]:
        """Use a node again; return how it stands."""

    async def accept_cut(self, stream: str, partitioner: str, partition: int) -> dict[str, Any]:
        """Have a task go on without records that its log has lost; return which these are.

        A 409 says why that is refused.
        """
