"""Measures input topics for `/metrics`: events, dead letters, what waits, and where the time goes."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from frontend.topics.inputs import Inputs
from railgun.telemetry.collector import metrics_of, none_of
from railgun.telemetry.families import INPUT

INPUT_STAGES = ("queue", "admission", "publish", "process", "encode", "durable", "total")
"""The stages of records that are read together. In order: waiting in the topic until they are read; being checked and
encoded; being handed to the producer; being processed by the tasks; being encoded as replies; being written, with dead
letters; and all of that, from the reading on."""


class InputCollector(Collector):
    """Collects the families of input topics. inputs: returns None before there are any."""

    def __init__(self, inputs: Callable[[], Inputs | None]) -> None:
        self._inputs = inputs

    def describe(self) -> Iterable[Metric]:
        """Return the families without samples."""
        return metrics_of(INPUT, {})

    def collect(self) -> Iterator[Metric]:
        """Yield the families, with samples of each stream whose input topics are read."""
        samples, inputs = none_of(INPUT), self._inputs()
        for stream, each in () if inputs is None else inputs.running.items():
            samples["railgun_input_events_total"].append(((stream,), each.record.events))
            samples["railgun_dead_letters_total"].append(((stream,), each.dead_letters))
            samples["railgun_input_skipped_total"] += [
                ((stream, topic), each.skipped[topic]) for topic in each.topics
            ]
            misses = each.path_misses
            samples["railgun_input_sampled_records_total"] += [
                ((stream, topic), records) for topic, records in misses.sampled.copy().items()
            ]
            samples["railgun_input_path_misses_total"] += [
                ((stream, *of), records) for of, records in misses.missed.copy().items()
            ]
            samples["railgun_input_in_flight_events"].append(((stream,), each.windows.events))
            samples["railgun_input_partitions"].append(((stream,), len(each.windows.all())))
            samples["railgun_input_rebalances_total"].append(((stream,), each.windows.rebalances))
            for where, records in each.lags().items():
                labels = stream, where.topic, str(where.partition)
                samples["railgun_input_lag_records"].append((labels, records))
            for stage in INPUT_STAGES:
                samples["railgun_input_stage_seconds"].append(((stream, stage), each.record.stages[stage]))
        yield from metrics_of(INPUT, samples)
