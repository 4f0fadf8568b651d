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

    def __str__(self) -> str:
        return f"{self.stream}/{self.partitioner}/{self.partition}"
