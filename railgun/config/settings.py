"""Every setting: one class for each section. Its fields are the keys, with defaults and bounds.

Each key also has a full name (`section.key`) and a variable in the environment.
"""

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass
from typing import Any, Literal

from railgun.access.tokens import Token
from railgun.config.kinds import (
    BYTES_BY_UNIT,
    SettingKind,
    addresses,
    bytes_,
    choice,
    hosts,
    lasting,
    milliseconds,
    seconds,
    stream_fields,
    text,
    tokens,
    truth,
    whole,
)

_KIB, _MIB, _GIB, _TIB = (BYTES_BY_UNIT[unit] for unit in ("KiB", "MiB", "GiB", "TiB"))
_HOUR_MS = 3_600_000

NONE = "none"
"""The value of a key for a file or an address if there is none."""

PassedThrough = str | int | float | bool


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """TLS of the HTTP port, and of a node's port. Keys name files in PEM; "none" means that there is no file.

    certificate: the server's certificate, followed by those between it and its CA.
    key: the certificate's private key, not encrypted.
    client_ca: the CAs of the certificates that clients have to show.
    client_crl: the lists of revoked certificates of these CAs.
    min_version: the oldest version that the port speaks.
    """

    certificate: str = text(NONE)
    key: str = text(NONE)
    client_ca: str = text(NONE)
    client_crl: str = text(NONE)
    min_version: Literal["1.3", "1.2"] = choice("1.3", "1.2")


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """The HTTP server: where it listens, and the limits beyond which it answers 413, 429 or 503.

    port: 0 lets the system choose.
    body_limit_bytes: the limit for a request, or for one line if lines are streamed.
    batch_limit_events: the most events in one JSON array.
    in_flight_limit_events, in_flight_limit_bytes: the most that all requests may have taken in without an answer yet.
    timeout_ms: how long an event's answer may take if the request names no time.
    keep_alive_s: how long a connection may idle.
    shutdown_grace_s: how long a server that was asked to stop finishes what is in flight.
    tokens_file: a file with more tokens; "none" if there is none.
    anonymous: anybody may do anything.
    behind_proxy: a proxy takes care that tokens do not come in clear text from other machines.
    hosts: the names under which browsers may call the server.
    tokens: who may do what.
    tls: a section of its own.
    """

    host: str = text("127.0.0.1")
    port: int = whole(8080, 0, 65_535)
    body_limit_bytes: int = bytes_(64 * _MIB, _KIB, _GIB)
    batch_limit_events: int = whole(10_000, 1, 1_000_000)
    in_flight_limit_events: int = whole(100_000, 1, 10_000_000)
    in_flight_limit_bytes: int = bytes_(256 * _MIB, _MIB, _TIB)
    connections_limit: int = whole(1_024, 1, 100_000)
    timeout_ms: int = milliseconds(30_000, 1, _HOUR_MS)
    keep_alive_s: float = seconds(75.0, 1_000, _HOUR_MS)
    shutdown_grace_s: float = seconds(10.0, 0, _HOUR_MS)
    tokens_file: str = text(NONE)
    anonymous: bool = truth(False)
    behind_proxy: bool = truth(False)
    hosts: tuple[str, ...] = hosts()
    tokens: tuple[Token, ...] = tokens()
    tls: TlsSettings = field(default_factory=TlsSettings)


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The engine: where its data is, which failures an answered event survives, how much memory it may use.

    transport: what `railgun serve` has as the log.
    durability: "fsync" survives the loss of power, "os" the death of the process.
    memory_limit_bytes: the limit for the caches and buffers of all tasks together.
    row_cache_bytes to write_buffer_bytes: the limits for each task.
    """

    data_folder: str = text("data")
    transport: Literal["embedded", "kafka"] = choice("embedded", "kafka")
    durability: Literal["fsync", "os"] = choice("fsync", "os")
    checkpoint_interval_s: float = seconds(10.0, 100, 24 * _HOUR_MS)
    memory_limit_bytes: int = bytes_(2 * _GIB, 16 * _MIB, _TIB)
    row_cache_bytes: int = bytes_(512 * _MIB, _MIB, _TIB)
    page_cache_bytes: int = bytes_(64 * _MIB, 4 * _MIB, _TIB)
    chunk_cache_bytes: int = bytes_(80 * _MIB, _MIB, _TIB)
    block_cache_bytes: int = bytes_(64 * _MIB, _MIB, _TIB)
    write_buffer_bytes: int = bytes_(64 * _MIB, _MIB, _TIB)


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """A cluster on Kafka: its broker, its topics, its nodes.

    broker: HOST:PORT, or several with commas.
    replication: the number of replicas of new topics; -1 leaves it to the broker.
    log_retention: how long the topics of new streams that do not say it keep what tasks read, in ms; None: for ever.
    node_name: "auto" is the name of the machine at the first start.
    units: processes of a node; 0: one for each core.
    rack: copies of a task are on nodes of different racks, as far as there are; "none" if it does not matter.
    copies: the number of copies of each task, as far as there are nodes.
    takeover_s: a copy that is silent for this long answers no more; another does.
    session_timeout_s: a node that is not heard for this long is away.
    replace_after_s: copies of a node that is away for this long are made elsewhere.
    moves_limit: how many copies are made on a node at once.
    transfer: where a node serves snapshots of its tasks to other nodes; "auto": the local address that reaches the
        broker, and any free port.
    transfer_advertised: the address at which other nodes reach that one; "none" if they reach it as it is.
    transfer_certificate, transfer_key, transfer_ca: files in PEM: of the server, and the CAs of other nodes' servers.
    transfer_clear_text: other machines may be served without TLS.
    transfer_rate_bytes: how many bytes a node sends in a second, at most; 0: as many as it can.
    transfer_after_records: a copy that another node's copy is further ahead of than this is fetched from there.
    hung_after_s: a unit or transfer process that tells its node nothing for this long is killed and started again.
    warm_wait_s: how long a new metric waits for other copies of a task to have filled it too.
    positions_interval_ms: between two reports of how tasks stand.
    metrics_host, metrics_port: the address at which a node gives its metrics; port 0 lets the system choose.
    drop_grace_s: how long topics and folders outlive a dropped stream.
    pending_limit_events, pending_limit_bytes: what a front-end has published and units have not answered, at most.
    """

    broker: str = addresses("127.0.0.1:9092")
    topic_prefix: str = text("railgun")
    replication: int = whole(-1, -1, 100)
    log_retention: int | None = lasting(_HOUR_MS)
    node_name: str = text("auto")
    units: int = whole(0, 0, 1_024)
    rack: str = text("none")
    copies: int = whole(2, 1, 100)
    takeover_s: float = seconds(1.0, 500, _HOUR_MS)
    session_timeout_s: float = seconds(10.0, 1_000, _HOUR_MS)
    replace_after_s: float = seconds(300.0, 1_000, 24 * _HOUR_MS)
    moves_limit: int = whole(4, 1, 10_000)
    transfer: str = text("auto")
    transfer_advertised: str = text(NONE)
    transfer_certificate: str = text(NONE)
    transfer_key: str = text(NONE)
    transfer_ca: str = text(NONE)
    transfer_clear_text: bool = truth(False)
    transfer_rate_bytes: int = bytes_(100 * BYTES_BY_UNIT["MB"], 0, _TIB)
    transfer_after_records: int = whole(500_000, 1, 1_000_000_000_000)
    hung_after_s: float = seconds(60.0, 5_000, 24 * _HOUR_MS)
    warm_wait_s: float = seconds(600.0, 0, 24 * _HOUR_MS)
    positions_interval_ms: int = milliseconds(50, 1, _HOUR_MS)
    metrics_host: str = text("127.0.0.1")
    metrics_port: int = whole(0, 0, 65_535)
    drop_grace_s: float = seconds(60.0, 0, 24 * _HOUR_MS)
    pending_limit_events: int = whole(50_000, 1, 10_000_000)
    pending_limit_bytes: int = bytes_(128 * _MIB, _MIB, _TIB)


@dataclass(frozen=True, slots=True)
class InputSettings:
    """Events from input topics.

    transactional: each reply is in the output topic exactly once, for readers of committed records.
    unwritten_limit_events: the most events of a stream that were read and have no reply in the output topic yet.
    schema_registry_url: where the schemas of framed records come from; "none" if there is none.
    schema_file: the Avro schema of all framed records instead; "none" if there is none.
    """

    transactional: bool = truth(False)
    unwritten_limit_events: int = whole(20_000, 1_000, 50_000)
    schema_registry_url: str = text("none")
    schema_file: str = text("none")


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """What front-ends show of single events.

    samples: how many of the last events of each stream a front-end keeps for those who look; 0: none.
    samples_limit_bytes: how much memory those of one stream may take.
    masks: fields that are not shown, as STREAM.FIELD, nor what would tell their values.
    """

    samples: int = whole(0, 0, 1_000)
    samples_limit_bytes: int = bytes_(4 * _MIB, 64 * _KIB, _GIB)
    masks: tuple[str, ...] = stream_fields()


CONSOLE_DEFAULTS = ConsoleSettings()
"""No events are kept, and nothing is masked."""


@dataclass(frozen=True, slots=True)
class LoggingSettings:
    """The program's log on stderr. format: "auto" means text on a terminal, otherwise JSON lines."""

    level: Literal["debug", "info", "warning", "error"] = choice("info", "debug", "warning", "error")
    format: Literal["auto", "text", "json"] = choice("auto", "text", "json")


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, by section. kafka: settings of librdkafka by their own names, which are passed on as they are."""

    http: HttpSettings = field(default_factory=HttpSettings)
    engine: EngineSettings = field(default_factory=EngineSettings)
    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    input: InputSettings = field(default_factory=InputSettings)
    console: ConsoleSettings = field(default_factory=ConsoleSettings)
    logging: LoggingSettings = field(default_factory=LoggingSettings)
    kafka: Mapping[str, PassedThrough] = field(default_factory=dict)


ENVIRONMENT_PREFIX = "RAILGUN_"


@dataclass(frozen=True, slots=True)
class Key:
    """One key: `section.name`. A section may lie in another one, as `http.tls` does."""

    section: str
    name: str
    kind: SettingKind

    def __str__(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        """The key's variable in the environment, such as RAILGUN_HTTP__PORT or RAILGUN_HTTP__TLS__KEY."""
        return ENVIRONMENT_PREFIX + str(self).upper().replace(".", "__")


def leaves(settings: Any, section: str = "") -> Iterator[tuple[str, Field[Any], Any]]:
    """Yield (section, field, value) for each key of settings, and of the sections in them."""
    for each in fields(settings):
        value = getattr(settings, each.name)
        if is_dataclass(value):
            yield from leaves(value, f"{section}.{each.name}" if section else each.name)
        else:
            yield section, each, value


PASSED_THROUGH = "kafka"
"""The section whose keys are librdkafka's."""
KEYS = {
    str(key): key
    for section, each, _ in leaves(Settings())
    if each.name != PASSED_THROUGH
    for key in (Key(section, each.name, each.metadata["kind"]),)
}
"""Every key by its full name, in the order of the sections."""
SECTIONS = tuple(dict.fromkeys(key.section for key in KEYS.values()))
