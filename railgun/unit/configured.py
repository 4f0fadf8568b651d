"""Makes the settings of tasks and of the Kafka clients from the configuration."""

from dataclasses import replace

from railgun.config.kinds import ConfigError
from railgun.config.processors import processors
from railgun.config.settings import ClusterSettings, EngineSettings, Settings
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.task.settings import TaskSettings


def task_settings(settings: EngineSettings) -> TaskSettings:
    """Return the settings with the most that each task gets."""
    return TaskSettings(
        row_cache_bytes=settings.row_cache_bytes,
        page_cache_bytes=settings.page_cache_bytes,
        chunk_cache_bytes=settings.chunk_cache_bytes,
        block_cache_bytes=settings.block_cache_bytes,
        write_buffer_bytes=settings.write_buffer_bytes,
        checkpoint_interval_s=settings.checkpoint_interval_s,
    )


def kafka_settings(settings: Settings) -> KafkaSettings:
    """Return the settings for reaching the cluster's broker. Raises ConfigError for a setting that cannot be passed
    through.
    """
    cluster = settings.cluster
    try:
        return KafkaSettings(cluster.broker, cluster.replication, settings.kafka)
    except ValueError as error:
        place, _, message = str(error).partition(": ")
        raise ConfigError(place, message) from None


# A task with much to do makes the others wait for everything that was fetched ahead for it. So at most about a tenth
# of a second's work is fetched ahead.
_FAIR = {"queued.min.messages": 10_000, "fetch.message.max.bytes": 1 << 20}


def for_shared_consumer(settings: KafkaSettings) -> KafkaSettings:
    """Return these settings for a consumer that many tasks share."""
    return replace(settings, pass_through={**_FAIR, **settings.pass_through})


def units_of(cluster: ClusterSettings) -> int:
    """Return how many processes a node has."""
    return cluster.units or processors()
