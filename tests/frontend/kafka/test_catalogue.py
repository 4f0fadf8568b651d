"""The catalogue of a cluster: what is done before a change, and what in it."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from frontend.kafka import catalogue
from frontend.kafka.catalogue import KafkaCatalogue
from railgun.catalog.catalog import Catalog
from railgun.catalog.definitions import stream_with_metrics
from railgun.catalog.stream_reading import stream_from_json
from railgun.registry.origin import UNNAMED

STREAM = stream_from_json({"name": "payments", "partitioners": ["card"], "fields": {"card": "string"}})
METRIC = "SELECT count(*) AS n FROM payments GROUP BY card OVER INFINITE"


class Running:
    """A cluster whose registry needs several attempts at a change, since others come between."""

    def __init__(self) -> None:
        self.is_changing = False

    async def call(self, do: Callable[[Any], Any]) -> Any:
        return await asyncio.to_thread(do, SimpleNamespace())

    async def change(self, request: Callable[[Catalog], Any], _: object) -> Any:
        self.is_changing = True
        return [request(Catalog()) for _ in range(3)][-1]


def test_the_metrics_of_a_new_stream_are_read_once_and_before_the_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running: Any = Running()
    read = list[bool]()

    def reads(*asked: Any) -> Any:
        read.append(running.is_changing)
        return stream_with_metrics(*asked)

    monkeypatch.setattr(catalogue, "stream_with_metrics", reads)
    cluster: Any = None
    made = KafkaCatalogue(running, cluster, cluster, cluster)
    assert asyncio.run(made.create_stream(STREAM, [METRIC], UNNAMED))
    assert read == [False]
