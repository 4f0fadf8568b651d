"""Railgun: exact sliding-window metrics for every event."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from railgun.engine.engine import Engine as Engine
    from railgun.engine.errors import EngineError as EngineError

__version__ = "0.1.0"
__all__ = ["Engine", "EngineError", "__version__"]


def __getattr__(name: str) -> Any:
    """Load the engine when it is first asked for: commands that need none start at once."""
    match name:
        case "Engine":
            from railgun.engine.engine import Engine

            return Engine
        case "EngineError":
            from railgun.engine.errors import EngineError

            return EngineError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
