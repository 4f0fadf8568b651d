"""The tasks of a stream with their logs, and what keeps the two together: records are durable and processed at once."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from railgun.engine.errors import FolderError
from railgun.messaging.transport import Entry, Transport
from railgun.task.processor import TaskProcessor
from railgun.task.replies import unanswered
from railgun.unit.task_log import TaskLog
from railgun.wire.encode import Records


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """One task of the stream, and its log."""

    partitioner: str
    task: TaskProcessor
    log: TaskLog


class Members:
    """All tasks of a stream, by partitioner in its order. One thread uses them.

    is_whole: False once something went wrong half-way; tasks and logs must then be opened again.
    """

    def __init__(self, log: Transport, members: Sequence[Member]) -> None:
        self._log = log
        self._members = tuple(members)
        self._by_place = {(m.partitioner, m.task.identity.partition): m for m in members}
        self.is_whole = True

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members)

    def at(self, partitioner: str, partition: int) -> Member:
        """One of them."""
        return self._by_place[partitioner, partition]

    @contextmanager
    def critical(self) -> Iterator[None]:
        """An error in the block, of any kind, leaves them unusable."""
        before, self.is_whole = self.is_whole, False
        yield
        self.is_whole = before

    @contextmanager
    def appending(self, sent: Sequence[tuple[Member, Sequence[bytes] | Records]]) -> Iterator[None]:
        """Append records while the block processes the same ones; on leaving it they are durable.

        Both are done at once because the offsets are known before: only this process writes to these logs.
        Appending that is refused at once has taken nothing.
        """
        if not sent:
            yield
            return
        positions = [member.task.position for member, _ in sent]
        future = self._log.submit([Entry(member.log.where, records) for member, records in sent])
        with self.critical():
            yield
            offsets = future.result()
            if offsets != positions:
                raise FolderError(f"the log gave offsets {offsets}, not {positions}; open the folder again")

    def control(self, members: Sequence[Member], records: list[bytes]) -> None:
        """Append the same control records to the logs of some, and bring them into force."""
        with self.appending([(member, records) for member in members]):
            for member in members:
                member.task.process(records, member.task.position, unanswered)
