"""A case: a definitions file, what happens then, and how the engine is disturbed; and its playing."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.oracle.definitions import Stream
from tests.oracle.records import Record
from tests.oracle.steps import Player, Reply, Step, perform
from tests.oracle.stream import Oracle, StreamOracle
from tests.oracle.task import TaskReply

STREAM = "s"


@dataclass(frozen=True)
class Batch:
    """Steps that may be given to an engine at once; it restarts before them where `restart` is set."""

    steps: tuple[Step, ...]
    restart: bool


@dataclass(frozen=True)
class Case:
    """Plain data; its `repr` is what to look at when it fails. The stream's name is STREAM.

    `cuts`: places in `steps`, growing, where a batch ends. `restarts`: those of them at which the process
    begins anew on the same data. Neither may show in any reply.
    """

    definitions: str
    steps: tuple[Step, ...]
    cuts: tuple[int, ...] = ()
    restarts: frozenset[int] = frozenset()

    def batches(self) -> Iterator[Batch]:
        """The steps cut into batches, none of them empty."""
        start = 0
        for end in (*self.cuts, len(self.steps)):
            if end > start:
                yield Batch(self.steps[start:end], start in self.restarts)
            start = end


@dataclass(frozen=True)
class TaskLog:
    """The log of one task as the case writes it, each event with the reply that it must get.

    `stream` is as it was at the beginning; the first metrics are the first records.
    """

    partitioner: str
    partition: int
    stream: Stream
    records: list[tuple[Record, TaskReply | None]]


def replies(case: Case, player: Player | None = None) -> list[Reply | None]:
    """What each step gives, on the oracle unless another player is named."""
    player = player or oracle(case)
    return [perform(player, step) for step in case.steps]


def oracle(case: Case) -> StreamOracle:
    """The oracle of a case's stream before the first step."""
    return Oracle(case.definitions).streams[STREAM]


def task_logs(case: Case) -> list[TaskLog]:
    """The logs of all tasks, for engines that are tested a task at a time."""
    player = oracle(case)
    stream = player.stream
    replies(case, player)
    return [
        TaskLog(partitioner, partition, stream, task.log)
        for partitioner, tasks in player.tasks.items()
        for partition, task in enumerate(tasks)
    ]
