"""An engine as the configuration wants it."""

from railgun.config.settings import EngineSettings
from railgun.engine.engine import Engine
from railgun.host.start import StartProgress
from railgun.task.configured import task_settings


def open_engine(settings: EngineSettings, start: StartProgress | None = None) -> Engine:
    """Open the folder that the settings name. start: told how far that is.  Raises EngineError."""
    return Engine(
        settings.data_folder,
        durability=settings.durability,
        settings=task_settings(settings),
        memory_limit_bytes=settings.memory_limit_bytes,
        start=start,
    )
