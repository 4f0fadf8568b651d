"""Finds a stream's logs on a cluster's broker: the stream in the catalogue, and the topic of a partitioner."""

from contextlib import suppress

from railgun.catalog.catalog import Catalog
from railgun.config.kinds import ConfigError
from railgun.messaging.errors import TopicMissingError, TransportError
from railgun.messaging.kafka.configured import check_pass_through
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.registry.catalog_log import read_on
from railgun.registry.entries import CatalogState
from railgun.registry.errors import RegistryError
from railgun.registry.topics import Topics
from railgun.spark.errors import OptionError, PlaceError
from railgun.spark.tables.choosing import chosen_partitioner, chosen_stream, defined
from railgun.spark.tables.options import ReadOptions, SourceKind
from railgun.spark.tables.record_log import RecordLog, StreamSchemas
from railgun.spark.tables.topic_log import connected, kafka_log

_ANSWER_S = 15.0


class BrokerPlace:
    """One partitioner of a stream of a cluster.

    stream, partitioner: those whose records are read.
    known: the stream's schemas.
    Raises OptionError, PlaceError.
    """

    def __init__(self, options: ReadOptions) -> None:
        assert options.broker is not None
        if options.path:
            raise OptionError(f"a broker and a folder ({options.path}) are named: the one or the other")
        if options.source is SourceKind.RESERVOIR:
            raise OptionError("option source: reservoirs are read from folders; leave out option broker")
        self.source = SourceKind.LOG
        self._settings = broker_settings(options.broker, options.kafka)
        self._topics = Topics(options.topic_prefix)
        if options.definitions is not None:
            self.known = defined(options.definitions, options.stream)
        else:
            place = f"{options.broker} ({self._topics.catalog})"
            catalog = cluster_catalog(self._settings, self._topics)
            entry = catalog.streams[chosen_stream(list(catalog.streams), options.stream, place)]
            self.known = StreamSchemas(entry.stream, dict(entry.schemas))
        self.partitioner = chosen_partitioner(self.known.stream, options.partitioner)

    def open(self) -> RecordLog:
        """Open the log of the records. The caller must close it. Raises PlaceError."""
        return kafka_log(self._settings, self._topics, self.known.stream.name, self.partitioner)


def broker_settings(broker: str, passed_through: dict[str, str]) -> KafkaSettings:
    """Return the settings of a connection to a broker. Raises OptionError for settings that librdkafka refuses."""
    try:
        settings = KafkaSettings(broker, pass_through=passed_through, answer_timeout_s=_ANSWER_S)
        check_pass_through(settings)
    except (ValueError, ConfigError) as error:
        raise OptionError(f"options kafka.…: {error}") from error
    return settings


def cluster_catalog(settings: KafkaSettings, topics: Topics) -> Catalog:
    """Return a cluster's catalogue, with every change that began. Raises PlaceError."""
    with connected(settings) as log:
        try:
            if topics.catalog not in log.topics():
                # A broker does not list topics that this user may not see. Asked for one by name, it says so.
                with suppress(TopicMissingError):
                    log.topic_id(topics.catalog)
                raise PlaceError(
                    f"{settings.broker}: there is no topic {topics.catalog}, so nothing was ever registered there; is "
                    "the broker right, and the prefix of topics?"
                )
            state = CatalogState(f"{settings.broker} {topics.catalog}")
            read_on(log, topics.catalog, log.start_offset(topics.catalog, 0), state)
        except (TransportError, RegistryError) as error:
            raise PlaceError(str(error)) from error
        return state.catalog
