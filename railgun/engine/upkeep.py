"""What a stream's tasks need beside events: fills, checkpoints, `warm` records, trimmed logs; in short slices."""

from collections.abc import Callable, Mapping

from railgun.catalog.changes import Warm, change_to_json
from railgun.engine.members import Member, Members
from railgun.messaging.transport import TopicPartition
from railgun.task.processor import TaskProcessor
from railgun.wire.encode import encode_control


class Upkeep:
    """may_warm: whether a `warm` record that is due may be written; tests hold some back.

    kept: by log, the offset from which on others need it too.
    """

    def __init__(
        self, members: Members, may_warm: Callable[[Warm], bool], kept: Mapping[TopicPartition, int]
    ) -> None:
        self._members, self._may_warm, self._kept = members, may_warm, kept
        self._trimmed = dict.fromkeys(members, 0)

    def work(self) -> bool:
        """A brief step in each task. True: there is more to do now."""
        more = False
        with self._members.critical():
            for member in self._members:
                more |= member.task.work(brief=True)
                if member.task.metrics.warming:
                    self._warm(member)
                if member.task.checkpoints.taken > self._trimmed[member]:
                    self._trim(member)
        return more

    def hasten(self) -> bool:
        """A slice of what warming metrics wait for, checkpoints included. True: there is more to do."""
        with self._members.critical():
            for member in self._members:
                if member.task.fills.waiting:
                    member.task.work()
                elif member.task.metrics.warming:
                    if not member.task.ready_to_warm():
                        # A finished fill makes a checkpoint due: it is taken a step at a time.
                        member.task.work()
                    self._warm(member)
        return any(self._may_warm(warm) for member in self._members for warm in _cold(member.task))

    def checkpoint(self) -> None:
        """Take a checkpoint of every task and wait for it."""
        with self._members.critical():
            for member in self._members:
                member.task.checkpoints.take()
                self._trim(member)

    def _warm(self, member: Member) -> None:
        warm = [each for each in member.task.ready_to_warm() if self._may_warm(each)]
        if warm:
            self._members.control([member], [encode_control(change_to_json(each)) for each in warm])

    def _trim(self, member: Member) -> None:
        """Let go of what no recovery of the task can need any more."""
        taken = member.task.checkpoints.taken
        if taken:
            self._trimmed[member] = taken
            before = member.task.checkpoints.durable_log_start
            member.log.trim(min(before, self._kept.get(member.log.where, before)))


def _cold(task: TaskProcessor) -> list[Warm]:
    """The `warm` records that a task still waits for."""
    metrics = task.metrics.by_name.values()
    return [Warm(task.identity.stream, m.definition.name, m.added) for m in metrics if not m.warm]
