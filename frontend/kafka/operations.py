"""The state of a cluster's nodes, and orders to the node that leads, as coroutines over `ClusterState`."""

from typing import Any

from frontend.kafka.parts import Parts
from frontend.kafka.running_cluster import RunningCluster
from frontend.problems import refusal


class KafkaOperations:
    """`ClusterOperations` of a cluster on Kafka."""

    def __init__(self, running: RunningCluster) -> None:
        self._running = running

    async def overview(self) -> dict[str, Any]:
        return await self._running.call(
            lambda parts: parts.cluster_state.overview(
                parts.intakes.now.catalog, parts.unanswered.tasks(), parts.task_logs.rooms()
            )
        )

    async def what_if(self, change: str) -> dict[str, Any]:
        return await self._running.call(
            lambda parts: parts.cluster_state.what_if(
                change, parts.intakes.now.catalog, parts.task_logs.rooms()
            )
        )

    async def drain(self, node: str, *, fewer_copies: bool) -> dict[str, Any]:
        return await self._running.call(
            lambda parts: parts.cluster_state.order(node, parts.tasks, is_on=True, fewer_copies=fewer_copies)
        )

    async def undrain(self, node: str) -> dict[str, Any]:
        return await self._running.call(
            lambda parts: parts.cluster_state.order(node, parts.tasks, is_on=False)
        )

    async def accept_cut(self, stream: str, partitioner: str, partition: int) -> dict[str, Any]:
        named = stream, partitioner, partition

        def accept(parts: Parts) -> dict[str, Any]:
            task = next(
                (each for each in parts.tasks if (each.stream, each.partitioner, each.partition) == named),
                None,
            )
            if task is None:
                raise refusal(404, f"there is no task {stream[:80]}/{partitioner[:80]}/{partition}")
            return parts.cluster_state.accept_cut(task, parts.registry)

        return await self._running.call(accept)
