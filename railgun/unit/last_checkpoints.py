"""Takes the last checkpoints of the tasks of a unit that stops, all together and within a time, for `UnitLoop.stop`."""

from collections.abc import Iterable

from railgun.host.missed_checkpoints import note_missed
from railgun.host.task_host import TaskHost
from railgun.unit.clock import Clock

# A pause in which commits are waited for. So long after the end of the time those that waited in vain have said so.
_LOOK_S, _SAID_S = 0.1, 1.0


def take_last_checkpoints(hosts: Iterable[TaskHost], until_s: float, clock: Clock) -> list[Exception]:
    """Take a checkpoint of each host's task, and return the errors. All are begun before any is waited for: one may
    have much to write, or wait for replies that do not come.

    hosts: those that run.
    until_s: by the clock. What is not durable by then is given up, and the checkpoint before it stands.
    """
    left, failures = list(hosts), list[Exception]()
    while left:
        is_written = all(host.task.checkpointer.is_committing for host in left)
        if clock.now() >= until_s + (_SAID_S if is_written else 0.0):
            break
        if is_written:
            left[0].task.checkpointer.wait(_LOOK_S)
        left = [host for host in left if not _is_over(host, failures)]
    for host in left:
        note_missed(host.task, "its checkpoint takes too long")
    return failures


def _is_over(host: TaskHost, failures: list[Exception]) -> bool:
    """Do some of a checkpoint. Returns whether it is durable or has failed."""
    try:
        return host.advance_checkpoint()
    except Exception as error:  # noqa: BLE001 - the others are checkpointed before it is raised
        failures.append(error)
        return True
