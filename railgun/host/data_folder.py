"""The names of folders in a node's data folder, in a module that loads nothing of the engine."""

from pathlib import Path

from railgun.history.durable_files import GONE

TASKS = "tasks"
"""The folder of all tasks."""

SNAPSHOTS = "snapshots"
"""The folder of all snapshots that are made for other nodes."""

FETCHING, REPLACED = ".fetching", ".replaced"
"""What is appended to the name of a task's folder: for the data that is being fetched from another node, and for the
task's own data that the fetched one has replaced."""

FETCHED = "FETCHED"
"""The file in a folder of fetched data that says that all of it is there and verified. It holds the manifest."""


def stream_folder(stream: str, created: int) -> str:
    """Return the name of the folder with a stream's tasks, in the folder of all tasks."""
    return f"{stream}.{created}"


def fetching_folder(folder: Path) -> Path:
    """Return the folder into which the data of a task is fetched. folder: the task's."""
    return folder.with_name(folder.name + FETCHING)


def replaced_folder(folder: Path) -> Path:
    """Return the folder of a task's own data while a fetched one replaces it. folder: the task's."""
    return folder.with_name(folder.name + REPLACED)


def is_on_its_way(name: str) -> bool:
    """Whether a folder of this name has the data of tasks on their way between nodes: it is no task, and has none."""
    return name == SNAPSHOTS or name.removesuffix(GONE).endswith((FETCHING, REPLACED))
