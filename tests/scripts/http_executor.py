"""The HTTP service as an executor of scripts: a real server over real sockets."""

from pathlib import Path

from tests.frontend.http_player import HttpPlayer, RefusedOverHttp
from tests.oracle.steps import Reply, Step, perform
from tests.scripts.executor import Refused
from tests.scripts.script import Restart


class HttpExecutor:
    """Every other restart is a crash."""

    abilities = frozenset({"clock", "warm"})

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.player: HttpPlayer | None = None
        self.restarts = 0

    def apply(self, definitions: str, stream: str) -> None:
        self.player = HttpPlayer(self.folder, stream)
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
        except RefusedOverHttp as refusal:
            raise Refused(str(refusal)) from refusal

    def close(self) -> None:
        if self.player is not None:
            self.player.close()
