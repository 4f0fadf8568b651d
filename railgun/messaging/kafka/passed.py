"""Whether librdkafka takes the settings that are passed through to it: asked of it, before anything is begun."""

from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from railgun.config.errors import ConfigError
from railgun.language.errors import nearest
from railgun.messaging.kafka.settings import LINGERING, KafkaSettings

_SECTION = "[kafka]"
# A wrong name is in most cases near one of these.
_COMMON = (
    *("security.protocol", "sasl.mechanisms", "sasl.username", "sasl.password", "ssl.ca.location"),
    *("ssl.certificate.location", "ssl.key.location", "ssl.key.password", "client.id", "linger.ms"),
    *("compression.type", "batch.size", "message.timeout.ms", "fetch.wait.max.ms", "fetch.min.bytes"),
    *("fetch.message.max.bytes", "queued.min.messages", "queued.max.messages.kbytes", "socket.timeout.ms"),
    *("socket.keepalive.enable", "reconnect.backoff.ms", "reconnect.backoff.max.ms", "metadata.max.age.ms"),
)


def check_passed_through(settings: KafkaSettings) -> None:
    """Raise ConfigError for a setting that librdkafka does not know, or a value that it cannot be."""
    if not settings.pass_through:
        return
    _check(lambda: Producer(settings.producer()), settings)
    _check(lambda: Producer({**settings.producer(), **LINGERING}), settings)
    _check(lambda: Consumer(settings.consumer()).close(), settings)
    _check(lambda: AdminClient(settings.admin()), settings)


def _check(make: Callable[[], object], settings: KafkaSettings) -> None:
    try:
        make()
    except KafkaException as error:
        said = error.args[0].str()
        wrong = next((key for key in settings.pass_through if key in said), None)
        place = _SECTION if wrong is None else f"{_SECTION} {wrong}"
        near = None if wrong is None or "No such" not in said else nearest(wrong, _COMMON)
        raise ConfigError(place, said + (f"; did you mean {near}?" if near else "")) from None
