"""The scripts of the semantics through HTTP on Kafka: some in every run, all of them in the long one."""

from pathlib import Path

import pytest

from railgun.catalog.definitions import parse_definitions
from tests.frontend.http_player import RefusedOverHttp
from tests.frontend.kafka.cluster import LocalCluster
from tests.frontend.kafka.cluster_http_player import FRONT_ENDS, ClusterHttpPlayer
from tests.scripts.executor import OracleExecutor
from tests.scripts.player_executor import PlayerExecutor
from tests.scripts.runner import complaints
from tests.scripts.script import read_script
from tests.scripts.test_scripts import SCRIPTS

ABILITIES = frozenset({"clock"})
# Units write `warm` when it is due; no script can say when.
PLAYABLE = [path for path in SCRIPTS if not read_script(path).needs - ABILITIES]
SOME = PLAYABLE[3::20]


@pytest.mark.parametrize("path", SOME, ids=lambda path: path.stem)
def test_a_script(path: Path, kafka: str, tmp_path: Path) -> None:
    _play(path, kafka, tmp_path)


@pytest.mark.torture
@pytest.mark.parametrize("path", PLAYABLE, ids=lambda path: path.stem)
def test_each_script(path: Path, kafka: str, tmp_path: Path) -> None:
    _play(path, kafka, tmp_path)


def _play(path: Path, broker: str, folder: Path) -> None:
    script = read_script(path)
    # Times of arrival do not go back within one front-end; of several, each has its own.
    timed = all(stream.time is not None for stream in parse_definitions(script.definitions).streams.values())
    front_ends = FRONT_ENDS if timed else 1
    executor = PlayerExecutor(
        lambda stream: ClusterHttpPlayer(
            LocalCluster(broker, folder / "data"), stream, front_ends=front_ends
        ),
        RefusedOverHttp,
        ABILITIES,
    )
    try:
        assert not complaints(script, executor, OracleExecutor(folder / "oracle"))
    finally:
        executor.close()
