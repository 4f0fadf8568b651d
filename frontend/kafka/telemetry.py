"""Measures a front-end of a cluster for `/metrics`: what waits for answers, and which tasks nobody answers."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from frontend.exchange.exchange import Exchange
from frontend.kafka.unanswered import UnansweredTasks
from railgun.telemetry.collector import metrics_of, none_of
from railgun.telemetry.families import ANSWERED, FRONT_END

OUTCOMES = ("answers", "repeated", "late", "older", "unreadable")
"""Answers that were waited for; of an event answered already; that came too late; to an earlier run of the front-end;
records that cannot be read."""


class ExchangeCollector(Collector):
    """exchange: None before there is one."""

    def __init__(self, exchange: Callable[[], Exchange | None]) -> None:
        self._exchange = exchange

    def describe(self) -> Iterable[Metric]:
        """The families without samples."""
        return metrics_of(FRONT_END, {})

    def collect(self) -> Iterator[Metric]:
        """The families, with samples where there is an exchange."""
        samples = none_of(FRONT_END)
        exchange = self._exchange()
        if exchange is not None:
            waiting = exchange.pending_table
            samples["railgun_pending_events"].append(((), waiting.events))
            samples["railgun_pending_bytes"].append(((), waiting.size_bytes))
            samples["railgun_pending_oldest_seconds"].append(((), waiting.oldest_s()))
            samples["railgun_replies_total"] += [
                ((outcome,), waiting.counts[outcome]) for outcome in OUTCOMES
            ]
        yield from metrics_of(FRONT_END, samples)


class UnansweredCollector(Collector):
    """tasks: None before they are known."""

    def __init__(self, tasks: Callable[[], UnansweredTasks | None]) -> None:
        self._tasks = tasks

    def describe(self) -> Iterable[Metric]:
        """The family without samples."""
        return metrics_of(ANSWERED, {})

    def collect(self) -> Iterator[Metric]:
        """The family, with a sample for each stream."""
        samples, tasks = none_of(ANSWERED), self._tasks()
        for stream, count in () if tasks is None else tasks.by_stream().items():
            samples["railgun_tasks_unanswered"].append(((stream,), count))
        yield from metrics_of(ANSWERED, samples)
