"""The errors of an engine in this process as problems, beside those of every backend."""

from frontend.backend.failures import registry_problem
from frontend.problems import FailureError, ProblemError, refusal
from railgun.engine.errors import EngineStoppedError, EventError, HistoryRefusedError, OpenFilesError
from railgun.registry.errors import EngineError


def as_problem(error: EngineError) -> ProblemError:
    """Return what a client is told of an engine's error."""
    match error:
        case EventError():
            return refusal(422, str(error), list(error.errors))
        case OpenFilesError():
            return refusal(422, str(error), [(("partitions",), "its tasks need too many open files")])
        case HistoryRefusedError():
            return refusal(409, str(error))
    return registry_problem(error)


def of_scoring(error: EngineError, *, has_stopped: bool) -> ProblemError:
    """Return what a client is told of an error that events met. has_stopped: whether the engine takes nothing any more.

    An engine that stopped in this very call may have the events in its log.
    """
    found = as_problem(error)
    if not has_stopped or found.problem.status != 503 or isinstance(error, EngineStoppedError):
        return found
    return FailureError(str(error), "; the events may count; sending them again with their ids is safe")
