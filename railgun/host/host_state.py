"""The states of a host, which runs one copy of a task, and the errors that concern a single task."""

from enum import StrEnum

from railgun.catalog.errors import CatalogError, DefinitionError
from railgun.messaging.errors import TransportError
from railgun.state.errors import StateError, StoreCorruptionError
from railgun.state.paged.errors import PageMissingError
from railgun.task.errors import HistoryDamagedError, TaskError
from reservoir.errors import CorruptionError, ReservoirError

# These errors would come again on whichever host the task ran.
OF_ONE_TASK = (TaskError, ReservoirError, StateError, DefinitionError, CatalogError)
# The data of a task on this node is damaged. That of another node may be whole.
DAMAGE = (CorruptionError, StoreCorruptionError, PageMissingError, HistoryDamagedError)
# Errors of a successor (a task that is built to replace another one). No caller waits for a successor, so none of these
# errors stops other tasks.
OF_A_SUCCESSOR = (*OF_ONE_TASK, TransportError, OSError)


def one_line(error: BaseException) -> str:
    """Return an error's message as a single line; the name of its type if it has no message."""
    return " ".join(str(error).split()) or type(error).__name__


class HostState(StrEnum):
    """The state of a host.

    FETCHING: the task's data has to come from another node. The caller must call `open` again once it is there.
    RECOVERING lasts until the task has processed its log up to where the log ended at opening.
    CHANGING: a record of the log says that another task replaces this one. Another thread prepares it.
    """

    CLOSED = "closed"
    OPENING = "opening"
    FETCHING = "fetching"
    RECOVERING = "recovering"
    ANSWERING = "answering"
    CHANGING = "changing"
    CLOSING = "closing"
    FAILED = "failed"
