"""The key that identifies a task in a cluster."""

from typing import NamedTuple


class TaskKey(NamedTuple):
    """Identifies a task.

    created: the place in the catalogue at which its stream was created. It distinguishes streams of the same name.
    """

    stream: str
    created: int
    partitioner: str
    partition: int

    @property
    def full_name(self) -> str:
        """The name that no task of an earlier stream of this name has: `stream.created/partitioner/partition`."""
        return f"{self.stream}.{self.created}/{self.partitioner}/{self.partition}"

    def __str__(self) -> str:
        return f"{self.stream}/{self.partitioner}/{self.partition}"
