"""The errors of an engine. Each message is one line that names the place and the remedy."""

from collections.abc import Sequence
from functools import partial

from railgun.catalog.errors import CatalogError, DefinitionError
from railgun.ingest.value_queries import QueryRefusedError
from railgun.messaging.errors import (
    RecordTooLargeError,
    TransportError,
    TransportLockedError,
    TransportVersionError,
)
from railgun.registry.errors import CatalogVersionError, DefinitionsError, EngineError, RegistryError
from railgun.registry.translation import message_of, translated_by
from railgun.state.errors import StateError, StoreLockedError, StoreVersionError
from railgun.task.errors import CheckpointVersionError, TaskError
from railgun.wire.table_validator import BadRow, TableError
from railgun.wire.validator import EventRefusedError, FieldError
from reservoir.errors import FormatVersionError, ReservoirError


class EventError(EngineError):
    """An event was refused. No event of the call was taken.

    row: the index of the event in the call; 0 for a single event.
    errors: the fields that are wrong, with the reasons.
    """

    def __init__(self, errors: Sequence[FieldError], row: int = 0, message: str | None = None) -> None:
        self.errors = tuple(errors)
        self.row = row
        super().__init__(message or str(EventRefusedError(self.errors)))


class QueryError(EngineError):
    """A value query was refused. errors: what is wrong, as in QueryRefusedError."""

    def __init__(self, refused: QueryRefusedError) -> None:
        self.errors = refused.errors
        super().__init__(str(refused))


class FolderError(EngineError):
    """The data folder, or the disk that it is on, cannot be used as it is."""


class FolderLockedError(FolderError):
    """Another process has the data folder open. owner: the id of that process."""

    def __init__(self, message: str, owner: str) -> None:
        self.owner = owner
        super().__init__(message)


class FolderVersionError(FolderError):
    """The data folder was written by a newer version of the program."""


class OpenFilesError(EngineError):
    """The tasks would need more open files than this process may have. Nothing was created."""


class HistoryRefusedError(EngineError):
    """The history cannot be put before the stream's log. Nothing was changed."""


def no_deepening_error(stream: str) -> HistoryRefusedError:
    """Return the error for a stream that has no deepening."""
    return HistoryRefusedError(f"{stream}: no deepening has begun; railgun backfill --deepen begins one")


def under_way_error(stream: str, cut_ms: int | None) -> HistoryRefusedError:
    """Return the error for a stream that has a deepening already.

    cut_ms: where the history of that deepening ends, in ms; None if it is only just beginning.
    """
    until = "now" if cut_ms is None else f"until {cut_ms} ms"
    return HistoryRefusedError(
        f"{stream}: a deepening {until} is under way; let it come to its end, or give it up "
        "(railgun backfill --deepen --give-up)"
    )


class EngineStoppedError(EngineError):
    """The engine is closed, or stopped after an error; the folder can be opened again."""


_LOCKED = (TransportLockedError, StoreLockedError)
_NEWER = (
    TransportVersionError,
    StoreVersionError,
    CheckpointVersionError,
    FormatVersionError,
    CatalogVersionError,
)
_STORED = (TransportError, StateError, ReservoirError, TaskError, RegistryError)


def refused_row(row: int, error: EventRefusedError) -> EventError:
    """Return the error for one event among several."""
    return EventError(error.errors, row, f"event {row}: {error}; no event of this call was taken")


def bad_row(first: int, bad: BadRow) -> EventError:
    """Return the error for a bad row of a table. first: the index in the table of the batch's first row."""
    row = first + bad.row
    message = f"row {row}: {bad.field}: {bad.msg}; no row of this table was taken"
    return EventError([FieldError((bad.field,), bad.msg)], row, message)


def translated(error: Exception) -> EngineError | None:
    """Return the engine's error for an error of the packages below; None for an error that is a
    programming mistake.
    """
    message = message_of(error)
    match error:
        case EngineError():
            return error
        case DefinitionError() | CatalogError():
            return DefinitionsError(message)
        case QueryRefusedError():
            return QueryError(error)
        case EventRefusedError():
            return EventError(error.errors)
        case TableError() | RecordTooLargeError():
            return EventError([], 0, message)
    if isinstance(error, _LOCKED):
        return FolderLockedError(message, error.owner)
    if isinstance(error, _NEWER):
        return FolderVersionError(message)
    return FolderError(message) if isinstance(error, (*_STORED, OSError)) else None


as_engine_errors = partial(translated_by, translated)
"""A context manager that raises errors of the packages below as EngineError. Programming mistakes pass unchanged."""
