"""Makes the settings of units, of tasks and of the Kafka clients from the configuration."""

import os
from dataclasses import replace

from railgun.config.kinds import ConfigError
from railgun.config.loading import flags_given, load_settings
from railgun.config.processors import processors
from railgun.config.settings import ClusterSettings, EngineSettings, Settings
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.task.settings import TaskSettings


def settings_of(config: str | None, broker: str | None) -> Settings:
    """Load the settings of a node: from its file, from the environment, and the broker from the command line.

    Raises ConfigError.
    """
    flags = flags_given({"--broker": ("cluster.broker", broker)})
    return load_settings(config, os.environ, flags)


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


# Units wait for a broker that is away, however long: nothing that is on its way is given up, whatever the user's
# setting says, by either of its names.
_GIVEN_UP, _ALIAS = "message.timeout.ms", "delivery.timeout.ms"
# A task with much to do makes the others wait for everything that was fetched ahead for it. So at most about a tenth
# of a second's work is fetched ahead.
_FAIR = {"queued.min.messages": 10_000, "fetch.message.max.bytes": 1 << 20}


def for_reports(settings: KafkaSettings) -> KafkaSettings:
    """Return these settings for clients of a unit, which never give up what they send."""
    passed = {key: value for key, value in settings.pass_through.items() if key != _ALIAS}
    return replace(settings, pass_through={**passed, _GIVEN_UP: 0})


def for_tasks(settings: KafkaSettings) -> KafkaSettings:
    """Return these settings for the clients of a unit's logs and replies, which many tasks share."""
    patient = for_reports(settings)
    return replace(patient, pass_through={**_FAIR, **patient.pass_through})


def units_of(cluster: ClusterSettings) -> int:
    """Return how many processes a node has."""
    return cluster.units or processors()
