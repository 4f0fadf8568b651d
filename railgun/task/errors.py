"""What can go wrong in a task, each with its place and what to do."""


class TaskError(Exception):
    """A task cannot go on. `place`: its folder, or topic, partition and offset."""

    def __init__(self, place: str, message: str) -> None:
        super().__init__(f"{place}: {message}")
        self.place = place


class CheckpointVersionError(TaskError):
    """The folder was written by another version of this program."""


class LogGapError(TaskError):
    """The log does not hold the records that the task has to read next."""


class UnknownSchemaError(TaskError):
    """A record names a schema version that no `stream` record before it has brought: copies must not diverge."""


class MalformedControlError(TaskError):
    """A control record that cannot be understood: copies must not diverge, so the task stops there.

    Written by a newer version of the program, or damaged: go on with that version, or with a copy of the folder.
    """
