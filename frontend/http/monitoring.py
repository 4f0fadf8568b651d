"""Makes the text of this server's `/metrics` from a registry of its own. `Service` calls it at the start."""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

import railgun
from frontend.backend.backend import ServedBackend
from frontend.http.in_flight import InFlight
from railgun.access.refusal_collector import RefusalCollector
from railgun.telemetry.collector import RailgunCollector


class Exposition:
    """The metrics of a server: those of its collector, of Python's garbage collector and of the process."""

    def __init__(self, collector: RailgunCollector) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(collector)
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """Return the body and its content type: Prometheus' text, or OpenMetrics if the Accept header asks for it."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type


def exposition(backend: ServedBackend, in_flight: InFlight, more: Sequence[Collector] = ()) -> Exposition:
    """Return the metrics of a server with a backend. more: collectors of this kind of backend."""
    made = Exposition(
        RailgunCollector(
            lambda: backend.recording,
            backend.reading,
            backend.live_figures.measure_disk,
            lambda: (in_flight.events, in_flight.size_bytes),
            lambda: backend.readiness().ready,
            railgun.__version__,
        )
    )
    for collector in (RefusalCollector(), *more):
        made.registry.register(collector)
    return made
