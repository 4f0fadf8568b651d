"""Measures a front-end of a cluster for `/metrics`: what waits for answers, and which tasks nobody answers."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from frontend.exchange.exchange import Exchange
from frontend.kafka.task_logs import TaskLogs
from frontend.kafka.unanswered import UnansweredTasks
from railgun.telemetry.collector import metrics_of, none_of
from railgun.telemetry.families import ANSWERED, FRONT_END, LOGS

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


class LogsCollector(Collector):
    """Collects where the logs of tasks begin, and what copies need of them. logs: returns None before there are any."""

    def __init__(self, logs: Callable[[], TaskLogs | None]) -> None:
        self._logs = logs

    def describe(self) -> Iterable[Metric]:
        """Return the families without samples."""
        return metrics_of(LOGS, {})

    def collect(self) -> Iterator[Metric]:
        """Yield the families, with samples for each task whose log is known. What is not known of it is left out."""
        samples, logs = none_of(LOGS), self._logs()
        for task, room in ({} if logs is None else logs.known()).items():
            labels = task.stream, task.partitioner, str(task.partition)
            samples["railgun_log_start_position"].append((labels, float(room.start)))
            if room.needed is not None:
                samples["railgun_log_needed_position"].append((labels, float(room.needed)))
            if room.left_ms is not None:
                samples["railgun_log_left_seconds"].append((labels, room.left_ms / 1000))
        yield from metrics_of(LOGS, samples)
