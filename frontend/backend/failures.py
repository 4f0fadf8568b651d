"""Turns the errors of a backend's calls into problems, with a status and the places of mistakes.

Both backends call it.
"""

import logging
import time
from collections.abc import Callable

from frontend.problems import ProblemError, UnknownStreamError, failed, refusal
from railgun.catalog.errors import CatalogError, DefinitionError
from railgun.registry import errors as registry_errors
from railgun.registry.errors import (
    DefinitionsError,
    DifferentDefinitionsError,
    EngineError,
    UnknownNameError,
)
from railgun.wire.validator import Location

_AGAIN_S = 60.0
_log = logging.getLogger("railgun.frontend")


class FailureLog:
    """Logs failures, since not every client is told of them. A failure that goes on is logged once a minute.

    Any thread may call it.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._last, self._logged_s = "", 0.0

    def note(self, failure: str) -> None:
        """Log a failure, unless it was the last one that was logged, less than a minute ago."""
        now_s = self._now()
        if failure != self._last or now_s - self._logged_s >= _AGAIN_S:
            self._last, self._logged_s = failure, now_s
            _log.warning("a request failed: %s", failure)


_failures = FailureLog()


def registry_problem(error: EngineError) -> ProblemError:
    """Return the problem that a client gets for an error. An error that is no mistake of the client is logged."""
    detail = str(error)
    match error:
        case registry_errors.UnknownStreamError():
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


def _definition(error: DefinitionsError) -> ProblemError:
    cause = error.__cause__
    if isinstance(cause, DefinitionError):
        detail = cause.message + (f"; {cause.hint}" if cause.hint else "")
        return refusal(422, str(cause), [(cause.loc, detail)])
    # A definition that is right by itself and does not fit what is registered gets a 409.
    return refusal(409 if isinstance(cause, CatalogError) or cause is None else 422, str(error))
