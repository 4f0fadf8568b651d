"""Task logs as a reader of an input topic writes them: with positions, some read again, some very late."""

from dataclasses import dataclass, field, replace

from tests.oracle.records import EventRecord, Position, Record
from tests.oracle.task import Task
from tests.strategies.case import TaskLog
from tests.strategies.source import Source


@dataclass
class _Input:
    """A partition of the input topic: what was read of it, how far it is committed, where reading goes on."""

    number: int
    events: list[EventRecord] = field(default_factory=list)
    committed: int = 0
    next: int = 0

    def record(self, offset: int, committed: int) -> EventRecord:
        return replace(self.events[offset], position=Position(self.number, offset, committed))


def redelivered(log: TaskLog, source: Source) -> TaskLog:
    """The log again, its events having come through an input topic of two partitions.

    Events are read in order from each; now and then a position is committed, reading begins anew at the
    committed one, or a record below it turns up once more. The replies are the oracle's.
    """
    inputs = [_Input(0), _Input(1)]
    records: list[Record] = []
    for record, _ in log.records:
        if not isinstance(record, EventRecord):
            records.append(record)
            continue
        partition = source.choice(inputs)
        partition.events.append(record)
        while partition.next < len(partition.events):
            records.append(partition.record(partition.next, partition.committed))
            partition.next += 1
        records += _disturbed(partition, source)
    task = Task(log.stream)
    return TaskLog(log.partitioner, log.partition, log.stream, [(r, task.apply(r)) for r in records])


def _disturbed(partition: _Input, source: Source) -> list[Record]:
    """Commit or rewind, by chance; the records of a reader that went on past its end."""
    if source.chance(25):
        partition.committed = source.integer(partition.committed, partition.next)
    if source.chance(15):
        partition.next = partition.committed
    if partition.committed > 0 and source.chance(10):
        offset = source.integer(0, partition.committed - 1)
        return [partition.record(offset, source.integer(0, offset))]
    return []
