"""Opening a folder of many tasks at once: all of them catch up, and where one cannot be opened none is left open."""

import itertools
import multiprocessing
import shutil
from pathlib import Path
from typing import Any

import pytest

import railgun
from railgun.catalog.names import column_name
from railgun.engine.errors import EngineStoppedError, FolderError
from railgun.messaging.embedded.log import Durability, EmbeddedLog
from railgun.registry.errors import EngineError
from railgun.registry.topics import topic_of
from railgun.task.settings import TaskSettings
from tests.task.committed import committed_at

NEVER = TaskSettings(checkpoint_interval_s=3_600.0, replay_s=3_600.0)
DEFINITIONS = """
[streams.s]
time = "ts"
id = "tx"
partitioners = ["card", "merchant"]
partitions = 3
[streams.s.fields]
tx = "string"
ts = "timestamp"
card = "string"
merchant = "string"
[[metrics]]
sql = "SELECT count(*) AS by_card FROM s GROUP BY card OVER SLIDING 1 HOUR"
[[metrics]]
sql = "SELECT count(*) AS by_merchant FROM s GROUP BY merchant OVER SLIDING 1 HOUR"
"""


def event(number: int) -> dict[str, Any]:
    return {"tx": f"t{number}", "ts": 10**12 + number, "card": f"c{number % 7}", "merchant": f"m{number % 5}"}


def unclosed(folder: Path, copy: Path) -> Path:
    """A folder as a killed process leaves it: checkpoints of half of what its logs hold."""
    with railgun.Engine(folder, durability="os", settings=NEVER) as engine:
        engine.apply(DEFINITIONS)
        engine.score_many("s", [event(n) for n in range(700)])
        with engine._call():
            engine._streams.live("s").hosts.checkpoint()
        engine.score_many("s", [event(n) for n in range(700, 1_400)])
        with engine._call():
            shutil.copytree(folder, copy)
    return copy


def test_all_tasks_catch_up(tmp_path: Path) -> None:
    folder = unclosed(tmp_path / "data", tmp_path / "copy")
    with railgun.Engine(folder, durability="os") as engine:
        reply = engine.score("s", event(1_400))
        assert reply["metrics"] == {"by_card": 201, "by_merchant": 281}
        assert engine.score("s", event(1_399))["duplicate"] == ["card", "merchant"]


def test_nothing_of_the_logs_before_the_checkpoints_is_needed(tmp_path: Path) -> None:
    """Duplicates of events that are in no chunk yet are found too."""
    folder = unclosed(tmp_path / "data", tmp_path / "copy")
    with EmbeddedLog(folder / "log", Durability.OS) as log:
        for partitioner, partition in itertools.product(("card", "merchant"), range(3)):
            topic, task = topic_of("s", partitioner), folder / "streams" / "s" / column_name(partitioner)
            log.trim(topic, partition, committed_at(task / str(partition)))
            assert log.start_offset(topic, partition) > 0
    with railgun.Engine(folder, durability="os") as engine:
        assert engine.score("s", event(1_400))["metrics"] == {"by_card": 201, "by_merchant": 281}
        for number in (0, 699, 700, 1_399):
            assert engine.score("s", event(number))["duplicate"] == ["card", "merchant"]


def test_one_that_cannot_be_opened_leaves_none_open(tmp_path: Path) -> None:
    folder = unclosed(tmp_path / "data", tmp_path / "copy")
    current = sorted(folder.rglob("state/CURRENT"))[3]
    kept = current.read_bytes()
    current.unlink()
    with pytest.raises(FolderError, match="CURRENT"):
        railgun.Engine(folder, durability="os")
    current.write_bytes(kept)
    with railgun.Engine(folder, durability="os") as engine:
        assert engine.score("s", event(1_400))["metrics"] == {"by_card": 201, "by_merchant": 281}


@pytest.mark.parametrize("gone", ["log", "log/log"])
def test_tasks_without_their_log_are_refused_before_anything_is_made(tmp_path: Path, gone: str) -> None:
    folder = unclosed(tmp_path / "data", tmp_path / "copy")
    shutil.rmtree(folder / gone)
    (folder / "log" / "end.mark").unlink(missing_ok=True)
    before = {str(each) for each in folder.rglob("*")}
    for _ in range(2):
        with pytest.raises(FolderError, match="restore the whole folder from one copy"):
            railgun.Engine(folder, durability="os")
    assert {str(each) for each in folder.rglob("*")} == before


def test_tasks_with_a_log_that_has_no_catalogue_are_refused(tmp_path: Path) -> None:
    folder = unclosed(tmp_path / "data", tmp_path / "copy")
    shutil.rmtree(folder / "log")
    EmbeddedLog(folder / "log").close()
    with pytest.raises(FolderError, match="does not know of them; restore the whole folder"):
        railgun.Engine(folder, durability="os")


def test_a_folder_whose_streams_were_all_dropped_opens(tmp_path: Path) -> None:
    with railgun.Engine(tmp_path / "data") as engine:
        engine.apply(DEFINITIONS)
        engine.drop_stream("s")
    with railgun.Engine(tmp_path / "data") as engine:
        assert engine.streams() == []


def test_a_folder_of_two_copies_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with railgun.Engine(tmp_path / name, durability="os") as engine:
            engine.apply(
                DEFINITIONS if name == "one" else DEFINITIONS.replace(".s", ".z").replace("FROM s", "FROM z")
            )
    shutil.copytree(tmp_path / "one/streams/s", tmp_path / "two/streams/s")
    with pytest.raises(
        FolderError, match="streams/s holds tasks of a stream that log/ does not know of; restore"
    ):
        railgun.Engine(tmp_path / "two")
    shutil.rmtree(tmp_path / "two/streams/s")
    railgun.Engine(tmp_path / "two").close()


def test_a_folder_without_its_version_is_refused(tmp_path: Path) -> None:
    railgun.Engine(tmp_path).close()
    (tmp_path / "VERSION").unlink()
    with pytest.raises(FolderError, match="VERSION is gone; restore the whole folder"):
        railgun.Engine(tmp_path)


def test_a_limit_that_is_none_is_refused() -> None:
    with pytest.raises(EngineError, match="memory_limit_bytes: -1 is no size"):
        railgun.Engine(memory_limit_bytes=-1)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_is_told_that_it_has_no_engine(tmp_path: Path) -> None:
    said = multiprocessing.get_context("fork").SimpleQueue()
    with railgun.Engine(tmp_path, durability="os") as engine:
        engine.apply(DEFINITIONS)

        def forked() -> None:
            try:
                engine.score("s", event(1))
            except EngineStoppedError as error:
                said.put(str(error))
            engine.close()

        child = multiprocessing.get_context("fork").Process(target=forked)
        child.start()
        child.join(60)
        assert child.exitcode == 0
        assert "belongs to process" in said.get()
        assert engine.score("s", event(1))["metrics"]["by_card"] == 1
