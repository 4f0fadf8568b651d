"""Which task a processor runs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskIdentity:
    """Which task: a partition of a stream's partitioner. `key`: the stream's 16 secret bytes."""

    stream: str
    partitioner: str
    partition: int
    key: bytes

    def __str__(self) -> str:
        return f"{self.stream}/{self.partitioner}/{self.partition}"
