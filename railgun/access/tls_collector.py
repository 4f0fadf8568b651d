"""The metrics about TLS of a port."""

from collections.abc import Iterable, Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from railgun.access.tls import OUTCOMES, Tls
from railgun.telemetry.collector import metrics_of, none_of
from railgun.telemetry.families import TLS


class TlsCollector(Collector):
    """Collects when certificates expire, and the number of handshakes by outcome."""

    def __init__(self, tls: Tls) -> None:
        self._tls = tls

    def describe(self) -> Iterable[Metric]:
        """Returns the families without samples."""
        return metrics_of(TLS, {})

    def collect(self) -> Iterator[Metric]:
        """Returns the families with their samples."""
        samples = none_of(TLS)
        for what, end_s in self._tls.certificates.ends_s.items():
            samples["railgun_certificate_end_seconds"].append(((what,), end_s))
        for outcome in OUTCOMES:
            samples["railgun_handshakes_total"].append(((outcome,), float(self._tls.handshakes[outcome])))
        yield from metrics_of(TLS, samples)
