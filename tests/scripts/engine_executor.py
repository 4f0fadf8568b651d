"""The engine as an executor of scripts, on a folder that it restarts on."""

from pathlib import Path

from railgun.engine.errors import EngineError
from tests.engine.player import EnginePlayer
from tests.oracle.steps import Reply, Step, perform
from tests.scripts.executor import Refused
from tests.scripts.script import Restart


class EngineExecutor:
    """Every other restart is a crash."""

    abilities = frozenset({"clock", "warm"})

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.player: EnginePlayer | None = None
        self.restarts = 0

    def apply(self, definitions: str, stream: str) -> None:
        self.player = EnginePlayer(self.folder, stream)
        self.player.apply(definitions)

    def perform(self, step: Step | Restart) -> Reply | None:
        if self.player is None:
            raise RuntimeError("apply comes first")
        if isinstance(step, Restart):
            self.restarts += 1
            self.player.restart(crash=self.restarts % 2 == 1)
            return None
        try:
            return perform(self.player, step)
        except EngineError as error:
            raise Refused(str(error)) from error

    def close(self) -> None:
        if self.player is not None:
            self.player.close()
