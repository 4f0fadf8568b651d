"""Shows and changes the streams and metrics of the engine in this process, for `EmbeddedBackend`."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from frontend.backend.letters import FoundLetters, LetterRequest
from frontend.embedded.running_engine import RunningEngine
from frontend.embedded.unread_topics import NO_BROKER, warn_of_unread_topics
from frontend.problems import refusal
from railgun.catalog.model import Definitions, StreamDefinition
from railgun.engine.engine import Engine
from railgun.explain.analysis import explained
from railgun.registry import evolution
from railgun.registry.change_log import LoggedChange
from railgun.registry.metric_status import MetricStatus
from railgun.registry.origin import Origin


class EmbeddedCatalogue:
    """`StreamCatalogue` of an engine."""

    def __init__(self, running: RunningEngine) -> None:
        self._running = running

    async def streams(self) -> list[StreamDefinition]:
        return await self._running.call(lambda engine: engine.streams())

    async def create_stream(
        self, definition: StreamDefinition, metrics: Sequence[str], origin: Origin
    ) -> bool:
        is_new = await self._running.change(
            lambda engine: engine.create_stream(definition, metrics, origin=origin)
        )
        if is_new:
            warn_of_unread_topics(definition)
        return is_new

    async def evolve_stream(
        self, stream: str, settings: Mapping[str, Any], origin: Origin
    ) -> StreamDefinition:
        await self._running.change(lambda engine: engine.evolve(stream, settings, origin=origin))
        definition = self._running.view(stream).definition
        if "input" in settings:
            warn_of_unread_topics(definition)
        return definition

    async def drop_stream(self, stream: str, origin: Origin) -> None:
        await self._running.change(lambda engine: engine.drop_stream(stream, origin=origin))

    async def add_metrics(self, stream: str, sql: str, origin: Origin) -> tuple[list[MetricStatus], bool]:
        def add(engine: Engine) -> tuple[list[MetricStatus], bool]:
            names, is_new = engine.register_metrics(stream, sql, origin=origin)
            return [each for each in engine.metrics(stream) if each.name in names], is_new

        return await self._running.change(add)

    async def metrics(self, stream: str) -> list[MetricStatus]:
        return await self._running.call(lambda engine: engine.metrics(stream))

    async def drop_metric(self, stream: str, name: str, origin: Origin) -> None:
        await self._running.change(lambda engine: engine.drop_metric(stream, name, origin=origin))

    async def change_log(self, limit: int, before: int | None) -> list[LoggedChange]:
        return await self._running.call(lambda engine: engine.change_log(limit, before))

    async def dead_letters(self, stream: str, asked: LetterRequest) -> FoundLetters:
        self._running.view(stream)
        raise refusal(
            409,
            "this server scores in its own process and reads no topics, so no stream of it has dead letters; what is "
            "refused over HTTP is answered with the reason",
        )

    async def explain(self, stream: str, sql: str) -> dict[str, Any]:
        return await self._running.call(lambda engine: engine.explain(stream, sql))

    async def plan(self, stream: str) -> dict[str, Any]:
        # It is made of a copy of the catalogue, so that no event waits for it.
        return await self._running.call(
            lambda engine: explained(evolution.stream_entry(engine.catalog(), stream), Definitions())
        )

    async def status(self) -> dict[str, Any]:
        status = dataclasses.asdict(await self._running.call(lambda engine: engine.status()))
        for stream in status["streams"]:
            entry = self._running.entries.get(stream["name"])
            if entry is not None and entry.stream.input.topics:
                stream["input"] = [
                    {"topic": each, "not_read": NO_BROKER} for each in entry.stream.input.topics
                ]
        return status
