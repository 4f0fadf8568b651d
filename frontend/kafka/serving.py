"""A front-end of a cluster as a process: the port, the backend on Kafka, and for one machine a node beside it."""

import contextlib
import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

import uvloop
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from frontend.exchange.exchange import Exchange, Limits
from frontend.exchange.front_end import FrontEnd, made_up
from frontend.http.service import SWITCH_INTERVAL_S, Reload, Service, listen
from frontend.kafka.backend import KafkaBackend
from frontend.kafka.cluster import Cluster
from frontend.kafka.unanswered import UnansweredTasks
from frontend.topics.schemas import schemas_of
from frontend.topics.telemetry import InputCollector
from railgun.access.guard import Guard
from railgun.access.tls import Tls
from railgun.catalog.model import Definitions
from railgun.config.settings import Settings
from railgun.messaging.kafka.configured import check_pass_through, kafka_settings
from railgun.node.supervisor import NODE_NOT_READY, NODE_READY
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


# A node takes checkpoints of all its tasks when it is asked to stop.
_NODE_STOP_S = 90.0
_log = logging.getLogger("railgun.frontend")


def serve_frontend(
    settings: Settings,
    *,
    definitions: Definitions | None = None,
    on_ready: Callable[[str], None] | None = None,
    reload: Reload | None = None,
    node: Sequence[str] | None = None,
) -> int:
    """Serve until SIGTERM or SIGINT; the exit code: 0, or 1 where it stopped by itself.

    definitions: created at the start where missing.  on_ready: called with the URL once events are taken.
    reload: what SIGHUP does.  node: the command of a node that is to live as long, and reloads too; with its end
    everything ends.  Raises AddressError and EngineError where
    it cannot begin, ConfigError for a setting of Kafka's clients that cannot be passed through.
    """
    cluster = cluster_of(settings)
    check_pass_through(cluster.kafka)
    listener = listen(settings.http)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    beside = None if node is None else NodeBeside(node)
    backend = KafkaBackend(cluster, definitions, waits_for=None if beside is None else beside.is_ready)
    with contextlib.closing(listener):
        service = Service(
            settings.http,
            backend,
            listener,
            on_ready,
            [
                ExchangeCollector(lambda: backend.exchange),
                UnansweredCollector(lambda: backend.unanswered_tasks),
                InputCollector(lambda: backend.inputs),
            ],
            reload if reload is None or beside is None else beside.reloading_too(reload),
        )
        if beside is None:
            return uvloop.run(service.run())
        with beside.running(service.stop):
            code = uvloop.run(service.run())
        return 1 if beside.has_failed else code


def cluster_of(settings: Settings) -> Cluster:
    """What the configuration says of the cluster, and of this front-end in it."""
    cluster = settings.cluster
    name = cluster.node_name
    return Cluster(
        kafka_settings(settings),
        cluster.topic_prefix,
        made_up() if name == "auto" else FrontEnd(name),
        Limits(cluster.pending_limit_events, cluster.pending_limit_bytes),
        drop_grace_s=cluster.drop_grace_s,
        log_retention_ms=cluster.log_retention,
        input=settings.input,
        schemas=schemas_of(settings.input),
    )


class NodeBeside:
    """A node that runs as long as a block. has_failed: whether it ended before."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._ready = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self.has_failed = False
        self._signalling = threading.Lock()
        self._has_to_reload = False

    def is_ready(self) -> bool:
        """Whether all its units have caught up once, but for copies that have failed."""
        return self._ready.is_set()

    def reloading_too(self, reload: Reload) -> Reload:
        """A reload that the node hears of."""

        def both(guard: Guard, tls: Tls | None) -> None:
            reload(guard, tls)
            with self._signalling:
                self._has_to_reload = not self.is_ready()
                if not self._has_to_reload:
                    self._have_it_reload()

        return both

    def _have_it_reload(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGHUP)

    def _note_ready(self) -> None:
        """Have it reload if that was asked for before: it may not have got so far as to know the signal."""
        with self._signalling:
            self._ready.set()
            if self._has_to_reload:
                self._has_to_reload = False
                self._have_it_reload()

    @contextlib.contextmanager
    def running(self, stop: Callable[[], None]) -> Iterator[None]:
        """Run it; `stop` is called where it ends by itself."""
        leaving = threading.Event()
        # Nothing is written: its input ends when this process does, however that comes.
        process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._process = process

        def watch() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                # Events are taken all the same where a copy has failed: another node answers them.
                if line.strip() == NODE_READY.encode() or line.startswith(NODE_NOT_READY.encode()):
                    self._note_ready()
            code = process.wait()
            if not leaving.is_set():
                _log.error("the node ended with %d", code)
                self.has_failed = True
                stop()

        watcher = threading.Thread(target=watch, name="node", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            leaving.set()
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            watcher.join(_NODE_STOP_S)
            if watcher.is_alive():
                _log.error("the node did not stop in time and is killed")
                process.kill()
                watcher.join()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()
