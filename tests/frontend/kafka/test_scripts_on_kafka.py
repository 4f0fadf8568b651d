"""The scripts of the semantics through HTTP on Kafka: some in every run, all of them in the long one."""

from pathlib import Path

import pytest

from tests.frontend.http_player import RefusedOverHttp
from tests.frontend.kafka.cluster_http_player import ClusterHttpPlayer
from tests.oracle.steps import Reply, Step, perform
from tests.scripts.executor import OracleExecutor, Refused
from tests.scripts.runner import complaints
from tests.scripts.script import Restart, read_script
from tests.scripts.test_scripts import SCRIPTS

ABILITIES = frozenset({"clock"})
# Units write `warm` when it is due; no script can say when.
PLAYABLE = [path for path in SCRIPTS if not read_script(path).needs - ABILITIES]
SOME = PLAYABLE[3::20]


class KafkaExecutor:
    """Every other restart is a crash of the units."""

    abilities = ABILITIES

    def __init__(self, broker: str, folder: Path) -> None:
        self._broker, self._folder = broker, folder
        self._player: ClusterHttpPlayer | None = None
        self._restarts = 0

    def apply(self, definitions: str, stream: str) -> None:
        self._player = ClusterHttpPlayer(self._broker, self._folder, stream)
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
        except RefusedOverHttp as refusal:
            raise Refused(str(refusal)) from refusal

    def close(self) -> None:
        if self._player is not None:
            self._player.close()


@pytest.mark.parametrize("path", SOME, ids=lambda path: path.stem)
def test_a_script(path: Path, kafka: str, tmp_path: Path) -> None:
    _play(path, kafka, tmp_path)


@pytest.mark.torture
@pytest.mark.parametrize("path", PLAYABLE, ids=lambda path: path.stem)
def test_each_script(path: Path, kafka: str, tmp_path: Path) -> None:
    _play(path, kafka, tmp_path)


def _play(path: Path, broker: str, folder: Path) -> None:
    script = read_script(path)
    executor = KafkaExecutor(broker, folder / "data")
    try:
        assert not complaints(script, executor, OracleExecutor(folder / "oracle"))
    finally:
        executor.close()
