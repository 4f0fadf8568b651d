"""The errors of the reservoir. Each names its place and what the operator can do."""

DAMAGE_REMEDY = (
    "Restore the data folder from a copy. The task's folder may be removed only where another node has a copy of the "
    "task, or the whole log is kept: its data comes from there then"
)
"""What helps where the data of a task is damaged."""


class ReservoirError(Exception):
    """Base of every error of this package."""


class CorruptionError(ReservoirError):
    """Bytes on disk are not what was written. `file`, `offset` (bytes) and `reason` say where and how."""

    def __init__(self, file: str, offset: int, reason: str) -> None:
        super().__init__(f"{file}, byte {offset}: {reason}. {DAMAGE_REMEDY}")
        self.file, self.offset, self.reason = file, offset, reason


class FormatVersionError(ReservoirError):
    """A segment was written by a newer release than this one."""

    def __init__(self, file: str, found: int, known: int) -> None:
        super().__init__(
            f"{file}: format version {found}, but this release reads versions up to {known}; "
            "run the release that wrote it, or a later one"
        )
        self.file, self.found, self.known = file, found, known


class ForeignSegmentError(ReservoirError):
    """A segment belongs to another stream, or was written with another chunk size."""

    def __init__(self, file: str, what: str, found: object, expected: object) -> None:
        super().__init__(
            f"{file}: its {what} is {found}, expected {expected}; the folder holds another task's data: "
            "move it away, or give the task its own folder"
        )
        self.file, self.what, self.found, self.expected = file, what, found, expected


class StorageFailedError(ReservoirError):
    """A write or fsync failed. The reservoir accepts no more rows until it is opened again."""

    def __init__(self, file: str, action: str, cause: BaseException) -> None:
        super().__init__(
            f"{file}: {action} failed: {cause}; nothing was acknowledged since the last checkpoint: "
            "free space or replace the disk, then start again"
        )
        self.file, self.action, self.cause = file, action, cause


class RowOrderError(ReservoirError):
    """A row cannot be placed: it lies at or before the last sealed row, or came out of log order."""

    def __init__(self, seq: int, reason: str) -> None:
        super().__init__(
            f"log position {seq}: {reason}; the task's admission and its reservoir disagree: "
            "keep the folder for a report, and restore it from a copy"
        )
        self.seq, self.reason = seq, reason


class CapacityError(ReservoirError):
    """A fixed table is full. `limit` is its size."""

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"more than {limit} {what}; drop metrics, or split them over several streams")
        self.what, self.limit = what, limit
