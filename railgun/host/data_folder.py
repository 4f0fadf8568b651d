"""The names of folders in a node's data folder, in a module that loads nothing."""

TASKS = "tasks"
"""The folder of all tasks."""


def stream_folder(stream: str, created: int) -> str:
    """Return the name of the folder with a stream's tasks, in the folder of all tasks."""
    return f"{stream}.{created}"
