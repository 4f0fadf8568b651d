"""An engine as the configuration wants it."""

from railgun.config.settings import EngineSettings
from railgun.engine.engine import Engine
from railgun.task.settings import TaskSettings


def open_engine(settings: EngineSettings) -> Engine:
    """Open the folder that the settings name. Raises EngineError."""
    return Engine(
        settings.data_folder,
        durability=settings.durability,
        settings=task_settings(settings),
        memory_limit_bytes=settings.memory_limit_bytes,
    )


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
