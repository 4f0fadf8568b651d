"""Makes the settings of Kafka's clients from the configuration, and checks them before anything starts."""

from collections.abc import Callable
from dataclasses import replace

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from railgun.config.kinds import ConfigError
from railgun.config.settings import Settings
from railgun.language.errors import nearest
from railgun.messaging.kafka.settings import LINGERING, KafkaSettings

_SECTION = "[kafka]"
# The settings that are used most, to be suggested in place of an unknown one.
_COMMON = (
    *("security.protocol", "sasl.mechanisms", "sasl.username", "sasl.password", "ssl.ca.location"),
    *("ssl.certificate.location", "ssl.key.location", "ssl.key.password", "client.id", "linger.ms"),
    *("compression.type", "batch.size", "message.timeout.ms", "fetch.wait.max.ms", "fetch.min.bytes"),
    *("fetch.message.max.bytes", "queued.min.messages", "queued.max.messages.kbytes", "socket.timeout.ms"),
    *("socket.keepalive.enable", "reconnect.backoff.ms", "reconnect.backoff.max.ms", "metadata.max.age.ms"),
)
# Units wait for a broker that is away, however long. They never give up records on their way, whatever the user has set
# under either name.
_GIVEN_UP, _ALIAS = "message.timeout.ms", "delivery.timeout.ms"
# A task with much to do makes the others wait for everything that was fetched ahead for it. So at most about a tenth
# of a second's work is fetched ahead.
_FAIR = {"queued.min.messages": 10_000, "fetch.message.max.bytes": 1 << 20}


def kafka_settings(settings: Settings) -> KafkaSettings:
    """Return the settings to reach the cluster's broker. Raises ConfigError for one that cannot be passed through."""
    cluster = settings.cluster
    try:
        return KafkaSettings(cluster.broker, cluster.replication, settings.kafka)
    except ValueError as error:
        place, _, message = str(error).partition(": ")
        raise ConfigError(place, message) from None


def for_reports(settings: KafkaSettings) -> KafkaSettings:
    """Return these settings for the clients of a unit, which never give up records that they send."""
    passed = {key: value for key, value in settings.pass_through.items() if key != _ALIAS}
    return replace(settings, pass_through={**passed, _GIVEN_UP: 0})


def for_tasks(settings: KafkaSettings) -> KafkaSettings:
    """Return these settings for the clients of a unit's logs and replies, which many tasks share."""
    patient = for_reports(settings)
    return replace(patient, pass_through={**_FAIR, **patient.pass_through})


def check_pass_through(settings: KafkaSettings) -> None:
    """Make each kind of client with the settings, without connecting.

    Raises ConfigError for a setting that librdkafka does not know, or a value that it refuses.
    """
    if not settings.pass_through:
        return
    _check(lambda: Producer(settings.producer()), settings)
    _check(lambda: Producer({**settings.producer(), **LINGERING}), settings)
    _check(lambda: Consumer(settings.consumer()).close(), settings)
    _check(lambda: AdminClient(settings.admin()), settings)


def _check(create: Callable[[], object], settings: KafkaSettings) -> None:
    try:
        create()
    except KafkaException as error:
        message = error.args[0].str()
        key = next((key for key in settings.pass_through if key in message), None)
        place = _SECTION if key is None else f"{_SECTION} {key}"
        suggestion = None if key is None or "No such" not in message else nearest(key, _COMMON)
        if suggestion:
            message += f"; did you mean {suggestion}?"
        raise ConfigError(place, message) from None
