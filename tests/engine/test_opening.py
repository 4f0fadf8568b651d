"""Opening a folder of many tasks at once: all of them catch up, and where one cannot be opened none is left open."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import railgun
from railgun.engine.errors import FolderError
from railgun.task.settings import TaskSettings

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
            engine._streams.upkeep("s").checkpoint()
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
