"""The errors of a task. Each names the place, and what can be done."""


class TaskError(Exception):
    """A task cannot continue. `place`: its folder, or a topic, partition and offset."""

    def __init__(self, place: str, message: str) -> None:
        super().__init__(f"{place}: {message}")
        self.place = place

    def add(self, more: str) -> None:
        """Add a sentence to the text."""
        self.args = (f"{self}. {more}",)


class TaskFolderError(TaskError):
    """The folder of a task cannot be there: something else has its place."""


class CheckpointVersionError(TaskError):
    """The folder was written by another version of this program."""


class LogGapError(TaskError):
    """The log does not hold the records that the task has to read next."""


class LogHoleError(LogGapError):
    """Records are missing amid the log. `next_offset`: where it goes on."""

    def __init__(self, place: str, message: str, next_offset: int) -> None:
        super().__init__(place, message)
        self.next_offset = next_offset


class LogCutError(LogGapError):
    """The log does not hold the records that a state was made of: the broker has lost records at its end.

    position: the offset behind the last of these records.
    leader_epoch: the epoch of that record; -1 if it is not known.
    """

    def __init__(self, place: str, message: str, position: int, leader_epoch: int) -> None:
        super().__init__(place, message)
        self.message, self.position, self.leader_epoch = message, position, leader_epoch


class LogReplacedError(LogGapError):
    """The log is another one than the one that a state was made of: its topic was deleted, and made again.

    topic_id: the id of the topic that the state was made of.
    """

    def __init__(self, place: str, message: str, topic_id: str) -> None:
        super().__init__(place, message)
        self.message, self.topic_id = message, topic_id


class StateLeftBehindError(LogGapError):
    """The log does not continue a state. It begins behind the state, or an operator has accepted a gap of the log that
    this state has not crossed.

    position: the offset of the record that the state needs next.
    leader_epoch: the epoch of the record before it; -1 if it is not known, or if there is none.
    clock_ms: the state's clock T; None if it has accepted nothing, or if that is not known.
    """

    def __init__(
        self, place: str, message: str, position: int, leader_epoch: int, clock_ms: int | None
    ) -> None:
        super().__init__(place, message)
        self.message, self.position, self.leader_epoch = message, position, leader_epoch
        self.clock_ms = clock_ms


class HistoryMissingError(TaskError):
    """The log orders that history lies before it, but the task's folder does not have that history.

    history: the id of the history.
    takes_over: whether the task is to be replaced at this record by one that was built with the history.
    damage: what is damaged of what was built with the history; empty if that is not there.
    """

    def __init__(self, place: str, history: str, *, takes_over: bool = False, damage: str = "") -> None:
        found = (
            f"what was built with it is damaged: {damage}"
            if damage
            else "its folder lacks it: restore the folder from a copy, or install the history's folder again"
        )
        super().__init__(place, f"history {history} was put before its log, and {found}")
        self.history, self.takes_over, self.damage = history, takes_over, damage


class HistoryDamagedError(TaskError):
    """A file of history is not what its manifest says."""


class DataDamagedError(TaskError):
    """A task's own data is damaged, and no other node gives its data."""


class UnknownSchemaError(TaskError):
    """A record names a schema version that no earlier `stream` record has defined.

    The task stops, because copies of it could compute different results otherwise.
    """


class MalformedControlError(TaskError):
    """A control record cannot be read. The task stops, because copies of it could compute different results
    otherwise.

    The record was written by a newer version of the program, or is damaged. Continue with that version, or with a
    copy of the folder.
    """


class SnapshotError(Exception):
    """A snapshot of a task cannot be made, or cannot be read. The text is one line."""
