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


class HistoryMissingError(TaskError):
    """The log says that history lies before it, and the task's folder does not have it.

    history: its id.  takes_over: from here on a task that was built with it is to go on.
    """

    def __init__(self, place: str, history: str, *, takes_over: bool = False) -> None:
        super().__init__(
            place,
            f"history {history} was put before its log, and its folder lacks it: restore the folder from a copy, or "
            "install the history's folder again",
        )
        self.history, self.takes_over = history, takes_over


class HistoryDamagedError(TaskError):
    """A file of history that is not what its manifest says."""


class UnknownSchemaError(TaskError):
    """A record names a schema version that no `stream` record before it has brought: copies must not diverge."""


class MalformedControlError(TaskError):
    """A control record that cannot be understood: copies must not diverge, so the task stops there.

    Written by a newer version of the program, or damaged: go on with that version, or with a copy of the folder.
    """
