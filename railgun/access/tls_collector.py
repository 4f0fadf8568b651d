"""What a port says of its TLS, for monitoring."""

from collections.abc import Iterable, Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from railgun.access.tls import OUTCOMES, Tls
from railgun.telemetry.collector import metrics_of, none_of
from railgun.telemetry.families import TLS


class TlsCollector(Collector):
    """Collects when certificates run out, and how many handshakes came to what."""

    def __init__(self, tls: Tls) -> None:
        self._tls = tls

    def describe(self) -> Iterable[Metric]:
        """The families without samples."""
        return metrics_of(TLS, {})

    def collect(self) -> Iterator[Metric]:
        """The families."""
        samples = none_of(TLS)
        for what, end_s in self._tls.certificates.ends_s.items():
            samples["railgun_certificate_end_seconds"].append(((what,), end_s))
        for outcome in OUTCOMES:
            samples["railgun_handshakes_total"].append(((outcome,), float(self._tls.handshakes[outcome])))
        yield from metrics_of(TLS, samples)
