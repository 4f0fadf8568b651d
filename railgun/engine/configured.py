"""Opens an engine as the configuration wants it, for `railgun serve` with an embedded engine."""

from railgun.config.settings import EngineSettings
from railgun.engine.engine import Engine
from railgun.host.start import StartProgress
from railgun.task.configured import task_settings


def open_engine(settings: EngineSettings, start: StartProgress | None = None) -> Engine:
    """Open the folder that the settings name. Raises EngineError.

    start: is told how far the opening has come.
    """
    return Engine(
        settings.data_folder,
        durability=settings.durability,
        settings=task_settings(settings),
        memory_limit_bytes=settings.memory_limit_bytes,
        start=start,
    )
