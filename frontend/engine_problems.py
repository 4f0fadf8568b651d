"""Errors of an engine as problems: which status, which places, whether it goes on."""

from frontend.problems import ProblemError, refusal
from railgun.catalog.errors import CatalogError, DefinitionError
from railgun.engine.errors import (
    DefinitionsError,
    DifferentDefinitionsError,
    EngineError,
    EventError,
    HistoryRefusedError,
    OpenFilesError,
    UnknownNameError,
)
from railgun.wire.door import Location


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
        case UnknownNameError():
            return refusal(404, detail)
        case DifferentDefinitionsError():
            places: list[tuple[Location, str]] = [((each.what,), str(each)) for each in error.differences]
            return refusal(409, detail, places)
        case DefinitionsError():
            return _definition(error)
    return refusal(503, detail)


def _definition(error: DefinitionsError) -> ProblemError:
    cause = error.__cause__
    if isinstance(cause, DefinitionError):
        said = cause.message + (f"; {cause.hint}" if cause.hint else "")
        return refusal(422, str(cause), [(cause.loc, said)])
    # What is right by itself and does not fit what is registered.
    return refusal(409 if isinstance(cause, CatalogError) or cause is None else 422, str(error))
