"""What runs a script: the contract, and the oracle behind it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from tests.oracle.errors import OracleError
from tests.oracle.steps import Player, Reply, Step, perform
from tests.oracle.stream import Oracle
from tests.scripts.script import Restart


class Refused(Exception):
    """The product refused a step, as it may have to; every other error is a failure."""


class Executor(Protocol):
    """Something with one stream that steps can be done to.

    `abilities`: of `script.ABILITIES`: `clock` (the front-end's clock can be set), `warm` (metrics can be
    left warming, and `warm` records written at a chosen place). Scripts that need others are skipped.
    """

    abilities: frozenset[str]

    def apply(self, definitions: str, stream: str) -> None:
        """Register what the definitions file says; returns when its metrics are warm."""

    def perform(self, step: Step | Restart) -> Reply | None:
        """Do one step and return when it is in force; an event gives its reply. Raises Refused."""

    def close(self) -> None:
        """End it and remove what it left."""


class OracleExecutor:
    """The oracle as an executor. A restart is nothing to it: results are a function of the log alone."""

    abilities = frozenset({"clock", "warm"})

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.player: Player | None = None

    def apply(self, definitions: str, stream: str) -> None:
        self.player = Oracle(definitions).streams[stream]

    def perform(self, step: Step | Restart) -> Reply | None:
        if self.player is None:
            raise RuntimeError("apply comes first")
        if isinstance(step, Restart):
            return None
        try:
            return perform(self.player, step)
        except OracleError as error:
            raise Refused(str(error)) from error

    def close(self) -> None:
        self.player = None


def _engine(folder: Path) -> Executor:
    """Imported when it is made: the engine's kernels take their time to load."""
    from railgun.registry.errors import EngineError
    from tests.engine.player import EnginePlayer
    from tests.scripts.player_executor import PlayerExecutor

    return PlayerExecutor(lambda stream: EnginePlayer(folder, stream), EngineError)


def _http(folder: Path) -> Executor:
    from tests.frontend.http_player import HttpPlayer, RefusedOverHttp
    from tests.scripts.player_executor import PlayerExecutor

    return PlayerExecutor(lambda stream: HttpPlayer(folder, stream), RefusedOverHttp)


# By the name that tests show; each is made with an empty folder of its own.
EXECUTORS: dict[str, Callable[[Path], Executor]] = {
    "oracle": OracleExecutor,
    "engine": _engine,
    "http": _http,
}


def reply_of(executor: Executor, step: Step | Restart) -> dict[str, Any] | str | None:
    """What a step gives: a reply, None, or in words that it was refused."""
    try:
        return executor.perform(step)
    except Refused as refusal:
        return f"refused: {refusal}"
