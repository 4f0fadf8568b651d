"""What the configuration says of tasks and of Kafka, as the rooms below want it."""

from dataclasses import replace

from railgun.config.settings import EngineSettings, Settings
from railgun.messaging.kafka_settings import KafkaSettings
from railgun.task.settings import TaskSettings


def task_settings(settings: EngineSettings) -> TaskSettings:
    """The most that each task gets."""
    return TaskSettings(
        row_cache_bytes=settings.row_cache_bytes,
        page_cache_bytes=settings.page_cache_bytes,
        chunk_cache_bytes=settings.chunk_cache_bytes,
        block_cache_bytes=settings.block_cache_bytes,
        write_buffer_bytes=settings.write_buffer_bytes,
        checkpoint_interval_s=settings.checkpoint_interval_s,
    )


def kafka_settings(settings: Settings) -> KafkaSettings:
    """How to reach the cluster's broker. Raises ValueError for a setting that cannot be passed through."""
    cluster = settings.cluster
    return KafkaSettings(cluster.broker, cluster.replication, settings.kafka)


# What a task with much to do has fetched ahead, the others wait for: a tenth of a second's work, not more.
_FAIR = {"queued.min.messages": 10_000, "fetch.message.max.bytes": 1 << 20}


def fairly(settings: KafkaSettings) -> KafkaSettings:
    """The same for a consumer that many tasks share."""
    return replace(settings, pass_through={**_FAIR, **settings.pass_through})
