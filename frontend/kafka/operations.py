"""The state of a cluster's nodes, and orders to the node that leads, as coroutines over `ClusterState`.

The pages of the cluster call them.
"""

from collections.abc import Callable
from typing import Any

from frontend.backend.cluster import GapOrder
from frontend.kafka.parts import Parts
from frontend.kafka.running_cluster import RunningCluster
from frontend.problems import refusal
from railgun.catalog.task_key import TaskKey


class KafkaOperations:
    """`ClusterOperations` of a cluster on Kafka."""

    def __init__(self, running: RunningCluster) -> None:
        self._running = running

    async def overview(self) -> dict[str, Any]:
        return await self._running.call(Parts.cluster_overview)

    async def what_if(self, change: str) -> dict[str, Any]:
        return await self._running.call(
            lambda parts: parts.cluster_state.what_if(
                change, parts.intakes.now.catalog, parts.task_logs.rooms(), parts.after_records
            )
        )

    async def drain(self, node: str, *, fewer_copies: bool) -> dict[str, Any]:
        return await self._ordered(
            lambda parts: parts.cluster_state.order(node, parts.tasks, is_on=True, fewer_copies=fewer_copies)
        )

    async def undrain(self, node: str) -> dict[str, Any]:
        return await self._ordered(lambda parts: parts.cluster_state.order(node, parts.tasks, is_on=False))

    async def accept_cut(self, stream: str, partitioner: str, partition: int) -> dict[str, Any]:
        named = stream, partitioner, partition
        return await self._ordered(
            lambda parts: parts.cluster_state.accept_cut(_task(parts, *named), parts.registry)
        )

    async def accept_gap(
        self, stream: str, partitioner: str, partition: int, order: GapOrder
    ) -> dict[str, Any]:
        named = stream, partitioner, partition
        return await self._ordered(
            lambda parts: parts.cluster_state.accept_gap(_task(parts, *named), parts.registry, order)
        )

    async def _ordered(self, give: Callable[[Parts], dict[str, Any]]) -> dict[str, Any]:
        """Give an order. Raises ProblemError, at once if the broker is known not to answer."""
        self._running.check_reached()
        return await self._running.call(give)


def _task(parts: Parts, stream: str, partitioner: str, partition: int) -> TaskKey:
    """Return the task of this name. Raises ProblemError (404)."""
    for task in parts.tasks:
        if (task.stream, task.partitioner, task.partition) == (stream, partitioner, partition):
            return task
    raise refusal(404, f"there is no task {stream[:80]}/{partitioner[:80]}/{partition}")
