"""A cluster on a real broker in this process: front-ends over HTTP, units in threads."""

import dataclasses
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from frontend.exchange.exchange import Limits
from frontend.formats.schemas import schemas_of
from frontend.http.service import Service, listen
from frontend.kafka.backend import KafkaBackend
from frontend.kafka.configuration import FrontEndConfiguration
from frontend.kafka.deadlines import DEADLINES, Deadlines
from frontend.kafka.telemetry import ExchangeCollector, LogsCollector, UnansweredCollector
from frontend.topics.telemetry import InputCollector
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.stream_reading import definition_to_json
from railgun.config.settings import CONSOLE_DEFAULTS, ConsoleSettings, HttpSettings, InputSettings
from railgun.task.settings import TaskSettings
from tests.broker.own_topics import own_prefix
from tests.frontend.serving import PATIENCE_S, in_thread, server, until
from tests.unit.local_units import LocalUnit, quick_settings


class RunningFrontEnd:
    """A front-end that a thread serves. code: what it returned, once it has.

    context: with which its client speaks TLS.
    """

    def __init__(
        self, service: Service, backend: KafkaBackend, context: ssl.SSLContext | None = None
    ) -> None:
        self.service, self.backend = service, backend
        self.code: int | None = None
        self.client = httpx.Client(
            base_url=service.url, timeout=PATIENCE_S, trust_env=False, verify=context or True
        )

    def post(self, path: str, body: Any = None, **more: Any) -> httpx.Response:
        return self.client.post(path, json=body, **more)

    def score(self, stream: str, event: Any, **more: Any) -> Any:
        response = self.post(f"/v1/streams/{stream}/events", event, **more)
        assert response.status_code == 200, response.text
        return response.json()


@contextmanager
def front_end(
    cluster: FrontEndConfiguration,
    *,
    now_ms: Callable[[], int] | None = None,
    context: ssl.SSLContext | None = None,
    **http: Any,
) -> Iterator[RunningFrontEnd]:
    """One on a free port, ready. http: settings that differ from the defaults.

    context: of its client, where they have it speak TLS.
    """
    settings = dataclasses.replace(HttpSettings(), port=0, shutdown_grace_s=1.0, **http)
    listener = listen(settings)
    backend = KafkaBackend(cluster, now_ms=now_ms)
    collectors = (
        ExchangeCollector(lambda: backend.exchange),
        UnansweredCollector(lambda: backend.unanswered_tasks),
        LogsCollector(lambda: backend.task_logs),
        InputCollector(lambda: backend.inputs),
    )
    service = Service(settings, backend, listener, collectors=collectors)
    running = RunningFrontEnd(service, backend, context)

    def ended(code: int) -> None:
        running.code = code

    with listener, running.client, in_thread(service, ended) as failures:
        until(lambda: bool(failures) or _has_begun(running.client.get("/readyz")))
        if not failures:
            yield running


def _has_begun(readiness: httpx.Response) -> bool:
    """Whether it does its work, also where no unit answers it."""
    return readiness.status_code == 200 or "no task of any stream is answered" in readiness.text


class LocalCluster:
    """Topics of its own on the broker, and units of one node's folder."""

    def __init__(
        self,
        broker: str,
        folder: Path,
        settings: TaskSettings | None = None,
        deadlines: Deadlines = DEADLINES,
    ) -> None:
        self.broker, self.folder, self.deadlines = broker, folder, deadlines
        self.settings = settings or TaskSettings()
        self.prefix = own_prefix("c")
        self.units: list[LocalUnit] = []
        self._stack = ExitStack()

    def __enter__(self) -> "LocalCluster":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """End everything."""
        try:
            self._stack.close()
        finally:
            self.stop_units()

    @property
    def where(self) -> FrontEndConfiguration:
        return FrontEndConfiguration(quick_settings(self.broker), self.prefix, deadlines=self.deadlines)

    def start_units(self, count: int) -> None:
        self.units = [self._unit(index, count) for index in range(count)]

    def start_unit(self, index: int, count: int) -> None:
        """One of so many, again after it was stopped."""
        self.units.insert(index, self._unit(index, count))

    def stop_unit(self, index: int, *, checkpoint: bool = True) -> None:
        """The one of this place among those that run; the others go on."""
        self.units.pop(index).stop(checkpoint=checkpoint)

    def stop_units(self, *, checkpoint: bool = True) -> None:
        units, self.units = self.units, []
        for unit in units:
            unit.stop(checkpoint=checkpoint)

    def _unit(self, index: int, count: int) -> LocalUnit:
        return LocalUnit(self.broker, self.prefix, self.folder, index, count, self.settings)

    def serve(
        self,
        limits: Limits | None = None,
        *,
        intake: InputSettings | None = None,
        console: ConsoleSettings = CONSOLE_DEFAULTS,
        **more: Any,
    ) -> RunningFrontEnd:
        """A front-end that runs as long as the cluster."""
        where = dataclasses.replace(
            self.where,
            limits=limits or Limits(),
            input=intake or InputSettings(),
            schemas=schemas_of(intake or InputSettings()),
            console=console,
        )
        return self._stack.enter_context(front_end(where, **more))


def define(client: httpx.Client, toml: str) -> None:
    """Make the streams and metrics of definitions, which are not there yet."""
    definitions = parse_definitions(toml)
    for stream in definitions.streams.values():
        assert client.post("/v1/streams", json=definition_to_json(stream)).status_code == 201
    for metric in (*definitions.metrics, *definitions.derived):
        place = f"/v1/streams/{metric.stream}/metrics"
        assert client.post(place, json={"sql": metric.sql}).status_code == 201


@contextmanager
def client_of(kafka: str | None, folder: Path, toml: str, units: int = 1) -> Iterator[httpx.Client]:
    """A client of a server with these definitions: of the embedded engine, or of a cluster where there is a broker."""
    if kafka is None:
        with server(folder / "data") as served:
            define(served.client, toml)
            yield served.client
        return
    with LocalCluster(kafka, folder) as cluster:
        client = cluster.serve().client
        define(client, toml)
        cluster.start_units(units)
        names = parse_definitions(toml).streams
        until(lambda: not any(warming(client, name) for name in names))
        yield client


def warming(client: httpx.Client, stream: str) -> list[str]:
    """The metrics of a stream that are warming."""
    metrics = client.get(f"/v1/streams/{stream}/metrics").json()["metrics"]
    return [each["name"] for each in metrics if each["warming"]]
