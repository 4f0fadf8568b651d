"""What `/metrics` of a front-end says of input topics: events, dead letters, what waits, where the time goes."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from frontend.door.inputs import Inputs

_STAGES = ("queue", "admission", "publish", "process", "encode", "durable", "total")
"""Of records read together: from the first one's time in the topic to its reading; checked and made records; handed to
the producer; there and back again; made replies; replies and letters written; all of it from the reading on."""


class InputCollector(Collector):
    """inputs: None before there are any."""

    def __init__(self, inputs: Callable[[], Inputs | None]) -> None:
        self._inputs = inputs

    def describe(self) -> Iterable[Metric]:
        """The families without samples."""
        return _families()

    def collect(self) -> Iterator[Metric]:
        """The families, with samples of each input topic that is read."""
        events, letters, waiting, rebalances, lag, stages = _families()
        inputs = self._inputs()
        for stream, each in () if inputs is None else inputs.running.items():
            events.add_metric((stream,), each.record.events)
            letters.add_metric((stream,), each.dead_letters)
            waiting.add_metric((stream,), each.windows.events)
            rebalances.add_metric((stream,), each.windows.rebalances)
            for partition, records in each.lags().items():
                lag.add_metric((stream, str(partition)), records)
            for stage in _STAGES:
                buckets = each.record.stages[stage]
                stages.add_metric((stream, stage), buckets.cumulative(), buckets.total)
        yield from (events, letters, waiting, rebalances, lag, stages)


def _families() -> tuple[
    CounterMetricFamily,
    CounterMetricFamily,
    GaugeMetricFamily,
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
]:
    of = ["stream"]
    return (
        CounterMetricFamily("railgun_input_events_total", "events of the input topic answered", labels=of),
        CounterMetricFamily("railgun_dead_letters_total", "records that could not be used", labels=of),
        GaugeMetricFamily("railgun_input_in_flight_events", "read and not written yet", labels=of),
        CounterMetricFamily("railgun_input_rebalances_total", "times partitions were given out", labels=of),
        GaugeMetricFamily(
            "railgun_input_lag_records", "that wait to be read, by partition", labels=[*of, "partition"]
        ),
        HistogramMetricFamily(
            "railgun_input_stage_seconds", "where the time of records goes", labels=[*of, "stage"]
        ),
    )
