"""The errors of the state of a task. Each names the folder and what the operator can do."""

from pathlib import Path

from reservoir.errors import DAMAGE_REMEDY


class StateError(Exception):
    """Something is wrong with the stored or resident state of a task."""


class StoreError(StateError):
    """RocksDB refused or failed. After a failed write the store refuses every further one."""

    def __init__(self, folder: Path, doing: str, reason: str, remedy: str) -> None:
        self.folder = folder
        self.doing = doing
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"state in {folder}: {doing}: {reason}. {remedy}")


class StoreLockedError(StoreError):
    """Another process (or another store in this one) has the folder open."""

    def __init__(self, folder: Path, owner: str) -> None:
        self.owner = owner
        super().__init__(
            folder,
            "open",
            f"the folder is in use by process {owner}",
            "Stop that process, or give this one a folder of its own",
        )


class StoreCorruptionError(StoreError):
    """The stored bytes cannot be those that were written."""

    def __init__(self, folder: Path, doing: str, reason: str) -> None:
        super().__init__(folder, doing, reason, DAMAGE_REMEDY)


class StoreVersionError(StoreError):
    """The state was stored by a newer version of the program than this one."""

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(folder, "read", reason, "Run the version that wrote it, or a newer one")


class EndMarkVersionError(StoreVersionError):
    """The mark of a log's end was written by a newer version of the program than this one."""

    def __init__(self, folder: Path, name: str, version: int) -> None:
        self.version = version
        super().__init__(folder, f"{name} has version {version}")


class EpochOrderError(StateError):
    """A defect of the program: an image, a commit or a layout came out of order. Nothing was written."""


class LayoutError(StateError):
    """A row layout is impossible: too wide for the memory given, its number in use, or its version unknown."""


class BatchTooLargeError(StateError):
    """The rows that one batch needs do not fit into memory together: cut the batch, or raise the limit.

    needed: rows of the group still to be loaded; limit_bytes: what the entity table may use.
    """

    def __init__(self, group: int, needed: int, limit_bytes: int) -> None:
        self.group = group
        self.needed = needed
        self.limit_bytes = limit_bytes
        super().__init__(
            f"{needed} more rows of group {group} do not fit beside those of the same batch in {limit_bytes} "
            "bytes. Use smaller batches, or raise the limit of the state's memory"
        )
