"""Makes the settings of a task from the configuration, for engines and units."""

from railgun.config.settings import EngineSettings
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
