"""Logs a warning if a task is closed without a last checkpoint, and how many records the next start processes again."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from railgun.messaging.errors import TransportError
from railgun.task.processor import TaskProcessor
from railgun.wording import counted

_log = logging.getLogger("railgun.unit")


def note_missed(task: TaskProcessor, reason: str) -> None:
    """Write the warning that a task is not checkpointed, and why."""
    durable = task.checkpoints.durable_position
    _log.warning(
        "%s is not checkpointed, %s: the next start processes %s again, from offset %d on",
        task.identity,
        reason,
        counted(task.position - durable, "record"),
        durable,
    )


@contextmanager
def saying_what_is_missed(task: TaskProcessor) -> Iterator[None]:
    """Write the warning if the block, which takes a checkpoint, fails because replies are not acknowledged."""
    try:
        yield
    except TransportError:
        note_missed(task, "replies are not acknowledged")
        raise
