"""The streams and metrics of a cluster, for `KafkaBackend`: read as this front-end knows them, changed through the
registry.
"""

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from frontend.access.masks import Masks
from frontend.backend.letters import FoundLetters, LetterRequest
from frontend.kafka.configuration import FrontEndConfiguration
from frontend.kafka.letters import newest_letters
from frontend.kafka.parts import Parts
from frontend.kafka.running_cluster import RunningCluster
from frontend.kafka.task_states import at_a_glance
from railgun.catalog.catalog import Catalog, StreamEntry
from railgun.catalog.changes import Change
from railgun.catalog.definitions import stream_with_metrics
from railgun.catalog.model import Definitions, StreamDefinition
from railgun.explain.analysis import explained, explained_query
from railgun.registry import evolution
from railgun.registry.change_log import LoggedChange
from railgun.registry.metric_status import MetricStatus, with_derived
from railgun.registry.origin import Origin
from railgun.telemetry.recording import Recording

_LETTER_READINGS = 2


class KafkaCatalogue:
    """`StreamCatalogue` of a cluster on Kafka.

    recording: its notes of a stream are dropped with the stream.  masks: what of dead letters nobody is shown.
    """

    def __init__(
        self, running: RunningCluster, cluster: FrontEndConfiguration, recording: Recording, masks: Masks
    ) -> None:
        self._running, self._cluster, self._recording, self._masks = running, cluster, recording, masks
        # Each has a connection of its own, and may hold as many bytes as a reading may take.
        self._letter_readings = asyncio.Semaphore(_LETTER_READINGS)

    async def streams(self) -> list[StreamDefinition]:
        return [entry.stream for entry in self._running.ready().intakes.now.catalog.streams.values()]

    async def create_stream(
        self, definition: StreamDefinition, metrics: Sequence[str], origin: Origin
    ) -> bool:
        # Before the change, so that no other one waits for it.
        wanted = await self._running.call(lambda _: stream_with_metrics(definition, metrics))
        return bool(await self._running.change(lambda catalog: evolution.new_stream(catalog, wanted), origin))

    async def evolve_stream(
        self, stream: str, settings: Mapping[str, Any], origin: Origin
    ) -> StreamDefinition:
        await self._running.change(
            lambda catalog: evolution.changed_stream(catalog, stream, settings), origin
        )
        return self._running.view(stream).definition

    async def drop_stream(self, stream: str, origin: Origin) -> None:
        await self._running.change(lambda catalog: [evolution.dropped_stream(catalog, stream)], origin)
        self._recording.forget(stream)

    async def add_metrics(self, stream: str, sql: str, origin: Origin) -> tuple[list[MetricStatus], bool]:
        names: list[str] = []

        def missing(catalog: Catalog) -> Sequence[Change]:
            metrics = evolution.metrics_of_query(catalog, stream, sql)
            names[:] = metrics.names
            return evolution.missing(catalog, metrics)

        is_new = bool(await self._running.change(missing, origin))
        return [each for each in await self.metrics(stream) if each.name in names], is_new

    async def metrics(self, stream: str) -> list[MetricStatus]:
        def metrics(parts: Parts) -> list[MetricStatus]:
            return _metrics_of(evolution.stream_entry(parts.intakes.now.catalog, stream), parts)

        return await self._running.call(metrics)

    async def drop_metric(self, stream: str, name: str, origin: Origin) -> None:
        await self._running.change(lambda catalog: [evolution.dropped_metric(catalog, stream, name)], origin)

    async def change_log(self, limit: int, before: int | None) -> list[LoggedChange]:
        return await self._running.call(lambda parts: parts.registry.log(limit, before))

    async def dead_letters(self, stream: str, asked: LetterRequest) -> FoundLetters:
        self._running.view(stream)
        self._running.check_reached()
        async with self._letter_readings:
            return await self._running.call(
                partial(newest_letters, self._cluster.kafka, self._masks, stream, asked)
            )

    async def explain(self, stream: str, sql: str) -> dict[str, Any]:
        def explain(parts: Parts) -> dict[str, Any]:
            return explained_query(evolution.stream_entry(parts.intakes.now.catalog, stream), sql)

        return await self._running.call(explain)

    async def plan(self, stream: str) -> dict[str, Any]:
        def plan(parts: Parts) -> dict[str, Any]:
            return explained(evolution.stream_entry(parts.intakes.now.catalog, stream), Definitions())

        return await self._running.call(plan)

    async def status(self) -> dict[str, Any]:
        return await self._running.call(self._status)

    def _status(self, parts: Parts) -> dict[str, Any]:
        known, logs = parts.intakes.now.catalog, parts.task_logs.rooms()
        away_s = self._running.away_s
        streams: list[dict[str, Any]] = [
            {
                "name": name,
                "input": parts.inputs.by_topic(name),
                "tasks": list(parts.task_states.tasks(entry, logs)),
                "metrics": [dataclasses.asdict(each) for each in _metrics_of(entry, parts)],
            }
            for name, entry in known.streams.items()
        ]
        tasks = [task for stream in streams for task in stream["tasks"]]
        return {
            "folder": self._cluster.kafka.broker,
            "durability": "kafka",
            "cluster": at_a_glance(
                [copy for task in tasks for copy in task["copies"]]
                if away_s is None
                else parts.task_states.copies(known, away_s),
                tasks,
                parts.unanswered.tasks(),
                parts.exchange.pending_table,
                self._cluster.log_retention_ms,
                {} if away_s is not None else parts.weak_topics.among(parts.task_topics),
                None if away_s is not None else parts.weak_topics.brokers(),
                logs,
                away_s,
            ),
            "streams": streams,
        }


def _metrics_of(entry: StreamEntry, parts: Parts) -> list[MetricStatus]:
    """Return the metrics of a stream, each with its state. Raises TransportError."""
    warming = parts.task_states.warming(entry)
    metrics = [
        MetricStatus.of(
            add.metric,
            warming=name in warming,
            filled=parts.task_states.filled(entry, name) if name in warming else 1.0,
        )
        for name, add in entry.metrics.items()
    ]
    return with_derived(entry.registered, metrics)
