"""The metrics about refused requests of a process."""

from collections.abc import Iterable, Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from railgun.access.refusals import STATUSES, RefusalLog, refusals
from railgun.telemetry.collector import metrics_of, none_of
from railgun.telemetry.families import ACCESS


class RefusalCollector(Collector):
    """Collects the number of refused requests by status. noted: the log that counted them."""

    def __init__(self, noted: RefusalLog = refusals) -> None:
        self._noted = noted

    def describe(self) -> Iterable[Metric]:
        """Returns the family without samples."""
        return metrics_of(ACCESS, {})

    def collect(self) -> Iterator[Metric]:
        """Returns the family with a sample for each status, also for a count of 0."""
        samples = none_of(ACCESS)
        for status in STATUSES:
            count = float(self._noted.requests[status])
            samples["railgun_requests_refused_total"].append(((str(status),), count))
        yield from metrics_of(ACCESS, samples)
