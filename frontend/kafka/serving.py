"""Runs a front-end of a cluster: an HTTP port, the backend on Kafka, and a node beside them if one is wanted."""

import contextlib
import sys
from collections.abc import Callable, Sequence

import uvloop

from frontend.exchange.exchange import Limits
from frontend.exchange.front_end import FrontEnd, made_up
from frontend.formats.schemas import schemas_of
from frontend.http.service import SWITCH_INTERVAL_S, Reload, Service, listen
from frontend.kafka.backend import KafkaBackend
from frontend.kafka.configuration import FrontEndConfiguration
from frontend.kafka.node_beside import NodeBeside
from frontend.kafka.telemetry import ExchangeCollector, LogsCollector, UnansweredCollector
from frontend.topics.telemetry import InputCollector
from railgun.catalog.model import Definitions
from railgun.config.settings import Settings
from railgun.config.shown import settings_shown
from railgun.messaging.kafka.configured import check_pass_through, kafka_settings


def serve_frontend(
    settings: Settings,
    *,
    definitions: Definitions | None = None,
    on_ready: Callable[[str], None] | None = None,
    reload: Reload | None = None,
    node: Sequence[str] | None = None,
) -> int:
    """Serve until SIGTERM or SIGINT. Return the exit code: 0, or 1 if the front-end stopped by itself.

    definitions: streams and metrics that are registered at the start if they are missing.
    on_ready: is called with the URL once events are taken.
    reload: is called at SIGHUP.
    node: the command of a node that runs beside, and is told of SIGHUP. If it ends, the front-end ends too.
    Raises AddressError and EngineError if the front-end cannot begin, ConfigError for a setting of Kafka's clients that
    cannot be passed through.
    """
    cluster = configuration_of(settings)
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
                LogsCollector(lambda: backend.task_logs),
                InputCollector(lambda: backend.inputs),
            ],
            reload if reload is None or beside is None else beside.reloading_too(reload),
            settings_shown(settings),
        )
        if beside is None:
            return uvloop.run(service.run())
        with beside.running(service.stop):
            code = uvloop.run(service.run())
        return 1 if beside.has_failed else code


def configuration_of(settings: Settings) -> FrontEndConfiguration:
    """Return the cluster, and the limits of this front-end, by the settings."""
    cluster = settings.cluster
    name = cluster.node_name
    return FrontEndConfiguration(
        kafka_settings(settings),
        cluster.topic_prefix,
        made_up() if name == "auto" else FrontEnd(name),
        Limits(cluster.pending_limit_events, cluster.pending_limit_bytes),
        drop_grace_s=cluster.drop_grace_s,
        log_retention_ms=cluster.log_retention,
        transfer_after_records=cluster.transfer_after_records,
        input=settings.input,
        schemas=schemas_of(settings.input),
        console=settings.console,
    )
