"""Checks, before anything starts, that librdkafka takes the settings that pass through to it."""

from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from railgun.config.errors import ConfigError
from railgun.language.errors import nearest
from railgun.messaging.kafka.settings import LINGERING, KafkaSettings

_SECTION = "[kafka]"
# Names to suggest for an unknown one: the settings that are used most.
_COMMON = (
    *("security.protocol", "sasl.mechanisms", "sasl.username", "sasl.password", "ssl.ca.location"),
    *("ssl.certificate.location", "ssl.key.location", "ssl.key.password", "client.id", "linger.ms"),
    *("compression.type", "batch.size", "message.timeout.ms", "fetch.wait.max.ms", "fetch.min.bytes"),
    *("fetch.message.max.bytes", "queued.min.messages", "queued.max.messages.kbytes", "socket.timeout.ms"),
    *("socket.keepalive.enable", "reconnect.backoff.ms", "reconnect.backoff.max.ms", "metadata.max.age.ms"),
)


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
