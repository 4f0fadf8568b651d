"""What `/metrics` of a front-end on Kafka says beside the rest: what waits for answers, what came of replies."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from frontend.kafka.exchange import Exchange

OUTCOMES = ("answers", "repeated", "late", "older", "unreadable")
"""Answers that were waited for; of an event answered already; that came too late; to an earlier run of the front-end;
records that cannot be read."""


class ExchangeCollector(Collector):
    """exchange: None before there is one."""

    def __init__(self, exchange: Callable[[], Exchange | None]) -> None:
        self._exchange = exchange

    def describe(self) -> Iterable[Metric]:
        """The families without samples."""
        return _families()

    def collect(self) -> Iterator[Metric]:
        """The families, with samples where there is an exchange."""
        events, size_bytes, oldest, replies = _families()
        exchange = self._exchange()
        if exchange is not None:
            waiting = exchange.waiting
            events.add_metric((), waiting.events)
            size_bytes.add_metric((), waiting.size_bytes)
            oldest.add_metric((), waiting.oldest_s())
            for outcome in OUTCOMES:
                replies.add_metric((outcome,), waiting.counts[outcome])
        yield from (events, size_bytes, oldest, replies)


def _families() -> tuple[GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily, CounterMetricFamily]:
    waiting = "events published and not answered by all partitioners yet"
    return (
        GaugeMetricFamily("railgun_pending_events", waiting, labels=()),
        GaugeMetricFamily("railgun_pending_bytes", "what they hold in memory, about", labels=()),
        GaugeMetricFamily(
            "railgun_pending_oldest_seconds", "how long the oldest of them has waited", labels=()
        ),
        CounterMetricFamily(
            "railgun_replies_total", "answers of tasks, by what became of them", labels=["outcome"]
        ),
    )
