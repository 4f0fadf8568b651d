"""Turns the errors of an engine in this process into problems, beside those of every backend."""

from frontend.backend.failures import registry_problem
from frontend.problems import FailureError, ProblemError, refusal
from frontend.scoring.answers_in_time import sent_again
from railgun.engine.errors import EngineStoppedError, EventError, HistoryRefusedError, OpenFilesError
from railgun.registry.errors import EngineError


def as_problem(error: EngineError) -> ProblemError:
    """Return the problem that a client gets for an engine's error."""
    match error:
        case EventError():
            return refusal(422, str(error), list(error.errors))
        case OpenFilesError():
            return refusal(422, str(error), [(("partitions",), "its tasks need too many open files")])
        case HistoryRefusedError():
            return refusal(409, str(error))
    return registry_problem(error)


def of_scoring(error: EngineError, *, has_stopped: bool) -> ProblemError:
    """Return the problem that a client gets for an error of scoring. has_stopped: whether the engine has stopped.

    If it stopped during this call, its log may have the events.
    """
    found = as_problem(error)
    if not has_stopped or found.problem.status != 503 or isinstance(error, EngineStoppedError):
        return found
    return FailureError(str(error), f"; the events may count; {sent_again(has_id=None)}")
