"""The states of a host, and the errors that concern one task and say nothing of the others."""

from enum import StrEnum

from railgun.catalog.errors import CatalogError, DefinitionError
from railgun.messaging.errors import TransportError
from railgun.state.errors import StateError
from railgun.task.errors import TaskError
from reservoir.errors import ReservoirError

# What would come again wherever the task is run.
OF_ONE_TASK = (TaskError, ReservoirError, StateError, DefinitionError, CatalogError)
# Of a task that nobody waits for: the others go on whatever it is.
OF_A_SUCCESSOR = (*OF_ONE_TASK, TransportError, OSError)


def one_line(error: BaseException) -> str:
    """What an error says, for whoever is told of it where there is one line; its kind where it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__


class HostState(StrEnum):
    """recovering: until the task has come to where its log ended when it was opened."""

    CLOSED = "closed"
    OPENING = "opening"
    RECOVERING = "recovering"
    ANSWERING = "answering"
    CLOSING = "closing"
    FAILED = "failed"
