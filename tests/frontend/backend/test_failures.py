"""Errors of a cluster's catalogue and transport as problems: what a client is told, whichever backend there is."""

import pytest

from frontend.backend.failures import registry_problem
from railgun.catalog.errors import CatalogError, DefinitionError
from railgun.engine import errors as engine_errors
from railgun.messaging.errors import (
    RecordTooLargeError,
    TransportRefusedError,
    TransportUnavailableError,
)
from railgun.registry.errors import (
    CatalogDamagedError,
    EngineError,
    RegistryBusyError,
    UnknownNameError,
    UnknownStreamError,
)
from railgun.registry.translation import as_registry_errors, registry_error

FAILED = "an error of the server, which its log names; a token with the scope metrics is told here what it is"
TOO_LARGE = RecordTooLargeError("railgun.catalog", 9, 8)
AWAY = TransportUnavailableError("railgun.catalog", "no answer", "Start the broker")


@pytest.mark.parametrize(
    ("error", "status", "detail"),
    [
        (DefinitionError(("lateness",), "not a duration", "write 5s"), 422, None),
        (CatalogError("there is a metric n of another query"), 409, "there is a metric n of another query"),
        (UnknownNameError("there is no metric m"), 404, "there is no metric m"),
        (UnknownStreamError("there is no stream", "s", ["t"]), 404, "there is no stream 's'"),
        (TOO_LARGE, 422, str(TOO_LARGE)),
        (AWAY, 503, FAILED),
        (TransportRefusedError("railgun.catalog", "no right", "Grant it"), 503, FAILED),
        (CatalogDamagedError("railgun.catalog", 3, "no JSON"), 503, FAILED),
        (RegistryBusyError("railgun.catalog", 5, False), 503, FAILED),
        (OSError(5, "I/O error"), 503, FAILED),
    ],
)
def test_what_a_client_is_told(error: Exception, status: int, detail: str | None) -> None:
    with pytest.raises(EngineError) as caught, as_registry_errors():
        raise error
    found = registry_problem(caught.value).problem
    assert (found.status, found.detail) == (status, str(error) if detail is None else detail)
    # An engine's client is told the same.
    with pytest.raises(EngineError) as of_engine, engine_errors.as_engine_errors():
        raise error
    assert str(of_engine.value) == str(caught.value)


def test_a_wrong_definition_is_told_with_its_place() -> None:
    with pytest.raises(EngineError) as caught, as_registry_errors():
        raise DefinitionError(("lateness",), "not a duration", "write 5s")
    (place,) = registry_problem(caught.value).problem.errors
    assert (place.loc, place.msg) == (("lateness",), "not a duration; write 5s")


def test_a_programming_mistake_is_no_error_of_the_engine() -> None:
    assert registry_error(KeyError("x")) is None
    with pytest.raises(KeyError), as_registry_errors():
        raise KeyError("x")


def test_an_error_of_the_engine_stays_what_it_is() -> None:
    error = UnknownNameError("there is no metric m")
    with pytest.raises(UnknownNameError) as caught, as_registry_errors():
        raise error
    assert caught.value is error
    assert caught.value.__cause__ is None
