"""A player of the product as an executor of scripts: the engine, the HTTP service, a cluster."""

from collections.abc import Callable
from typing import Protocol

from tests.oracle.steps import Player, Reply, Step, perform
from tests.scripts.executor import Refused
from tests.scripts.script import ABILITIES, Restart


class RestartablePlayer(Player, Protocol):
    """Plays steps on one stream of a product that keeps data and can begin anew on it."""

    def apply(self, definitions: str) -> None: ...

    def restart(self, *, crash: bool) -> None: ...

    def close(self) -> None: ...


class PlayerExecutor:
    """open_player: of a stream.  refusal: what the player raises where the product refuses a step.

    Every other restart is a crash.
    """

    def __init__(
        self,
        open_player: Callable[[str], RestartablePlayer],
        refusal: type[Exception],
        abilities: frozenset[str] = ABILITIES,
    ) -> None:
        self.abilities = abilities
        self._open_player, self._refusal = open_player, refusal
        self._player: RestartablePlayer | None = None
        self._restarts = 0

    def apply(self, definitions: str, stream: str) -> None:
        self._player = self._open_player(stream)
        self._player.apply(definitions)

    def perform(self, step: Step | Restart) -> Reply | None:
        if self._player is None:
            raise RuntimeError("apply comes first")
        if isinstance(step, Restart):
            self._restarts += 1
            self._player.restart(crash=self._restarts % 2 == 1)
            return None
        try:
            return perform(self._player, step)
        except self._refusal as error:
            raise Refused(str(error)) from error

    def close(self) -> None:
        if self._player is not None:
            self._player.close()
