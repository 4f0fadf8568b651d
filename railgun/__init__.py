"""Railgun: exact sliding-window metrics for every event."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from railgun.client.async_client import AsyncClient as AsyncClient
    from railgun.client.client import Client as Client
    from railgun.client.errors import ClientError as ClientError
    from railgun.client.errors import ConnectionLostError as ConnectionLostError
    from railgun.client.errors import ProblemError as ProblemError
    from railgun.client.errors import UnreachableError as UnreachableError
    from railgun.client.replies import KeyValues as KeyValues
    from railgun.client.replies import Reply as Reply
    from railgun.engine.engine import Engine as Engine
    from railgun.registry.errors import EngineError as EngineError

__version__ = "0.1.0"
__all__ = [
    "AsyncClient",
    "Client",
    "ClientError",
    "ConnectionLostError",
    "Engine",
    "EngineError",
    "KeyValues",
    "ProblemError",
    "Reply",
    "UnreachableError",
    "__version__",
]

# Loaded when they are first asked for: commands that need none of them start at once.
_MODULES = {
    "AsyncClient": "railgun.client.async_client",
    "Client": "railgun.client.client",
    "ClientError": "railgun.client.errors",
    "ConnectionLostError": "railgun.client.errors",
    "Engine": "railgun.engine.engine",
    "EngineError": "railgun.registry.errors",
    "KeyValues": "railgun.client.replies",
    "ProblemError": "railgun.client.errors",
    "Reply": "railgun.client.replies",
    "UnreachableError": "railgun.client.errors",
}


def __getattr__(name: str) -> Any:
    """Load a public name. Raises EngineMissingError, an ImportError, if it needs the engine and that is missing."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from railgun.extras import needing_engine

    with needing_engine(f"railgun.{name}"):
        return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """The names of the module, those that were not asked for yet among them."""
    return sorted({*globals(), *__all__})
