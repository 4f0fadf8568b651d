"""Translates errors of lower packages into EngineError, for an engine or a cluster."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from railgun.catalog.errors import CatalogError, DefinitionError
from railgun.host.host_state import one_line
from railgun.messaging.errors import RecordTooLargeError, TransportError
from railgun.registry.errors import DefinitionsError, EngineError, RegistryError


def registry_error(error: Exception) -> EngineError | None:
    """Return the EngineError for an error of a change or a look-up of the catalogue; None for a programming mistake."""
    match error:
        case EngineError():
            return error
        case DefinitionError() | CatalogError() | RecordTooLargeError():
            return DefinitionsError(message_of(error))
        case TransportError() | RegistryError() | OSError():
            return EngineError(message_of(error))
    return None


def message_of(error: Exception) -> str:
    """Return an error's message as one line.

    If too many files were open, the error's own remedy, which is about the disk, is replaced by how to allow more.
    """
    message = one_line(error)
    if os.strerror(errno.EMFILE) not in message:
        return message
    remedy = getattr(error, "remedy", None)
    text = message.removesuffix(f". {remedy}") if remedy else message
    return f"{text}; raise the limit of open files (ulimit -n), then start again"


@contextmanager
def translated_by(translate: Callable[[Exception], EngineError | None]) -> Iterator[None]:
    """Raise errors of lower packages as EngineError. Errors that are programming mistakes pass unchanged.

    translate: gives the EngineError for an error; None for a programming mistake.
    """
    try:
        yield
    except Exception as error:
        engine_error = translate(error)
        if engine_error is None or engine_error is error:
            raise
        raise engine_error from error


as_registry_errors = partial(translated_by, registry_error)
"""A context manager that raises errors of the catalogue as EngineError. Programming mistakes pass unchanged."""
