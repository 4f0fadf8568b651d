"""Measures a front-end of a cluster for `/metrics`: what waits for answers, and which tasks nobody answers."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from frontend.exchange.exchange import Exchange
from frontend.kafka.unanswered import UnansweredTasks
from railgun.telemetry.collector import metrics_of, none_of
from railgun.telemetry.families import ANSWERED, FRONT_END

OUTCOMES = ("answers", "repeated", "late", "older", "unreadable")
"""What became of answers, in order: they were waited for; the event was answered before; nobody waited any more; they
were for an earlier run of the front-end; the record could not be read."""


class ExchangeCollector(Collector):
    """Collects the families of a front-end's exchange. exchange: returns None before there is one."""

    def __init__(self, exchange: Callable[[], Exchange | None]) -> None:
        self._exchange = exchange

    def describe(self) -> Iterable[Metric]:
        """Return the families without samples."""
        return metrics_of(FRONT_END, {})

    def collect(self) -> Iterator[Metric]:
        """Yield the families, with samples if there is an exchange."""
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
    """Collects how many tasks nobody answers. tasks: returns None before they are known."""

    def __init__(self, tasks: Callable[[], UnansweredTasks | None]) -> None:
        self._tasks = tasks

    def describe(self) -> Iterable[Metric]:
        """Return the family without samples."""
        return metrics_of(ANSWERED, {})

    def collect(self) -> Iterator[Metric]:
        """Yield the family, with a sample for each stream."""
        samples, tasks = none_of(ANSWERED), self._tasks()
        for stream, count in () if tasks is None else tasks.by_stream().items():
            samples["railgun_tasks_unanswered"].append(((stream,), count))
        yield from metrics_of(ANSWERED, samples)
