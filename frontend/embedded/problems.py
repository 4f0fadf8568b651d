"""Errors of an engine as problems: which status, which places, whether it goes on."""

import logging
import time
from collections.abc import Callable

from frontend.problems import FailureError, ProblemError, UnknownStreamError, failed, refusal
from railgun.catalog.errors import CatalogError, DefinitionError
from railgun.engine import errors as engine_errors
from railgun.engine.errors import (
    DefinitionsError,
    DifferentDefinitionsError,
    EngineError,
    EngineStoppedError,
    EventError,
    HistoryRefusedError,
    OpenFilesError,
    UnknownNameError,
)
from railgun.wire.validator import Location

_AGAIN_S = 60.0
_log = logging.getLogger("railgun.frontend")


class FailureLog:
    """Logs failures, since not every client is told of them: one that goes on once a minute. From any thread."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._last, self._logged_s = "", 0.0

    def note(self, failure: str) -> None:
        """Log it, unless it was the last one that was logged, less than a minute ago."""
        now_s = self._now()
        if failure != self._last or now_s - self._logged_s >= _AGAIN_S:
            self._last, self._logged_s = failure, now_s
            _log.warning("a request failed: %s", failure)


_failures = FailureLog()


def as_problem(error: EngineError) -> ProblemError:
    """What a client is told of an engine's error."""
    detail = str(error)
    match error:
        case EventError():
            return refusal(422, detail, list(error.errors))
        case OpenFilesError():
            return refusal(422, detail, [(("partitions",), "its tasks need too many open files")])
        case HistoryRefusedError():
            return refusal(409, detail)
        case engine_errors.UnknownStreamError():
            return UnknownStreamError(error.stream, error.known)
        case UnknownNameError():
            return refusal(404, detail)
        case DifferentDefinitionsError():
            places: list[tuple[Location, str]] = [((each.what,), str(each)) for each in error.differences]
            return refusal(409, detail, places)
        case DefinitionsError():
            return _definition(error)
    _failures.note(detail)
    return failed(detail)


def of_scoring(error: EngineError, *, has_stopped: bool) -> ProblemError:
    """What a client is told of one that events met. has_stopped: is the engine one that takes nothing any more?

    One that stopped in this very call may have its events in the log.
    """
    found = as_problem(error)
    if not has_stopped or found.problem.status != 503 or isinstance(error, EngineStoppedError):
        return found
    return FailureError(str(error), "; the events may count; sending them again with their ids is safe")


def _definition(error: DefinitionsError) -> ProblemError:
    cause = error.__cause__
    if isinstance(cause, DefinitionError):
        detail = cause.message + (f"; {cause.hint}" if cause.hint else "")
        return refusal(422, str(cause), [(cause.loc, detail)])
    # What is right by itself and does not fit what is registered.
    return refusal(409 if isinstance(cause, CatalogError) or cause is None else 422, str(error))
