"""What `/metrics` answers: a registry of this process's own, and its text."""

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder

from railgun.telemetry.collector import RailgunCollector


class Exposition:
    """The collector's families, and what Python and the system say of this process."""

    def __init__(self, collector: RailgunCollector) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(collector)
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """(body, content type) for an Accept header: Prometheus' text, or OpenMetrics where it is asked for."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type
