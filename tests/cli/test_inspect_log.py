"""`railgun inspect` of an engine's data folder: the log is read, and tasks are compared with it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import railgun
from railgun.cli.main import main

DEFINITIONS = """
[streams.s]
time = "ts"
partitioners = ["card", "*"]
partitions = 2
[streams.s.fields]
ts = "timestamp"
card = "string"
[[metrics]]
sql = "SELECT count(*) AS n FROM s GROUP BY card OVER SLIDING 1 HOUR"
"""
EVENTS = 400


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that no test changes."""
    folder = tmp_path_factory.mktemp("engine") / "data"
    with railgun.Engine(folder) as engine:
        engine.apply(DEFINITIONS)
        engine.score_many("s", [{"ts": 10**12 + n, "card": f"c{n % 7}"} for n in range(EVENTS)])
    return folder


@pytest.fixture
def data(made: Path, tmp_path: Path) -> Path:
    """A copy, to be damaged."""
    return Path(shutil.copytree(made, tmp_path / "data"))


@pytest.fixture
def running_copy(tmp_path: Path) -> Path:
    """A folder as a killed process leaves it: the newest records are in the write-ahead log alone."""
    copy = tmp_path / "killed"
    with railgun.Engine(tmp_path / "running") as engine:
        engine.apply(DEFINITIONS)
        engine.score_many("s", [{"ts": 10**12 + n, "card": f"c{n % 7}"} for n in range(EVENTS)])
        with engine._call():
            shutil.copytree(tmp_path / "running", copy)
    return copy


def contents(folder: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def test_a_sound_folder_is_said_to_be_and_stays_as_it_is(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(data)
    assert main(["inspect", str(data)]) == 0
    assert f"{data}/log\n  log         " in capsys.readouterr().out
    assert main(["inspect", str(data), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["sound"]
    assert report["log"]["records"] >= 2 * EVENTS
    assert report["log"]["damage"] == []
    assert contents(data) == before


def test_an_engine_may_hold_it(tmp_path: Path) -> None:
    with railgun.Engine(tmp_path / "data") as engine:
        engine.apply(DEFINITIONS)
        engine.score_many("s", [{"ts": 10**12 + n, "card": f"c{n % 7}"} for n in range(EVENTS)])
        assert main(["inspect", str(tmp_path / "data")]) == 0
        engine.score("s", {"ts": 10**12 + EVENTS, "card": "c1"})


def test_flipped_bytes_are_found_in_every_file_of_records(
    data: Path, running_copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = list((data / "log" / "log").glob("*.sst"))
    written = [each for each in (running_copy / "log" / "log").glob("*.log") if each.stat().st_size]
    assert tables
    assert written
    for folder, file in [(data, each) for each in tables] + [(running_copy, each) for each in written]:
        whole = file.read_bytes()
        for place in (9, len(whole) // 4, len(whole) // 2, len(whole) - 20):
            damaged = bytearray(whole)
            damaged[place] ^= 0xFF
            file.write_bytes(damaged)
            assert main(["inspect", str(folder)]) == 1, (file, place)
            log = capsys.readouterr().out.rpartition(f"{folder}/log\n")[2]
            assert "  DAMAGE " in log, (file, place)
        file.write_bytes(whole)
        assert main(["inspect", str(folder)]) == 0


def _drop_log(data: Path) -> None:
    shutil.rmtree(data / "log")


def _drop_database(data: Path) -> None:
    shutil.rmtree(data / "log" / "log")


def _drop_current(data: Path) -> None:
    (data / "log" / "log" / "CURRENT").unlink()


def _other_log(data: Path) -> None:
    shutil.rmtree(data / "log")
    railgun.Engine(data.parent / "other").close()
    shutil.copytree(data.parent / "other" / "log", data / "log")


def _older_log(data: Path) -> None:
    shutil.rmtree(data / "log")
    with railgun.Engine(data.parent / "other") as engine:
        engine.apply(DEFINITIONS)
    shutil.copytree(data.parent / "other" / "log", data / "log")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_drop_log, "their log is gone; restore the whole folder from one copy"),
        (_drop_database, "their log is gone; restore the whole folder from one copy"),
        (_drop_current, "there is no embedded log here"),
        (_other_log, "the log does not know of this task"),
        (_older_log, "its log ends at"),
    ],
)
def test_tasks_without_their_log_are_damage(
    damage: Callable[[Path], None], said: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(data)
    assert main(["inspect", str(data)]) == 1
    shown = capsys.readouterr().out
    assert said in shown
    assert shown.rstrip().splitlines()[-1].startswith("  DAMAGE ")


def test_an_engine_without_streams_is_sound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    railgun.Engine(tmp_path / "data").close()
    assert main(["inspect", str(tmp_path / "data")]) == 0
    assert "sound" in capsys.readouterr().out
