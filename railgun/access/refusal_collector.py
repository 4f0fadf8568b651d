"""What a process says of the requests that it refused, for monitoring."""

from collections.abc import Iterable, Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from railgun.access.refusals import STATUSES, RefusalLog, refusals
from railgun.telemetry.collector import metrics_of, none_of
from railgun.telemetry.families import ACCESS


class RefusalCollector(Collector):
    """Collects how many requests were refused, by status. noted: that of the process."""

    def __init__(self, noted: RefusalLog = refusals) -> None:
        self._noted = noted

    def describe(self) -> Iterable[Metric]:
        """The family without samples."""
        return metrics_of(ACCESS, {})

    def collect(self) -> Iterator[Metric]:
        """The family, with a sample for each status, those of which there was none too."""
        samples = none_of(ACCESS)
        for status in STATUSES:
            count = float(self._noted.requests[status])
            samples["railgun_requests_refused_total"].append(((str(status),), count))
        yield from metrics_of(ACCESS, samples)
