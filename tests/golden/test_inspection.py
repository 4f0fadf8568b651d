"""`railgun inspect --json`: reports on tasks and on the log."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from railgun.cli.main import main
from railgun.history.manifest import write_manifest
from railgun.history.open_records import write_tail
from tests.engine.make_golden import GOLDEN, brought_back
from tests.golden.promises import held, masked, rooted
from tests.golden.test_history_files import MANIFEST

TASK = Path("streams", "payments", "card", "0")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return brought_back(GOLDEN / "v1", tmp_path / "data")


def inspected(data: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    main(["inspect", str(data), "--json"])
    found: dict[str, Any] = rooted(json.loads(capsys.readouterr().out), data)
    return found


def test_a_data_folder(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tail(data / TASK, ())
    write_manifest(data / TASK, MANIFEST)
    found = inspected(data, capsys)
    # Of RocksDB's files.
    held("inspection.json", {**found, "log": masked(found["log"], "size_bytes")})


def test_damage(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, *_, last = sorted((data / TASK / "reservoir").iterdir())
    body = bytearray(first.read_bytes())
    body[len(body) // 2] ^= 1
    first.write_bytes(body)
    last.write_bytes(last.read_bytes() + b"torn")
    shutil.rmtree(data / "log")
    found = inspected(data, capsys)
    found["tasks"] = [
        {name: task[name] for name in ("sound", "torn", "damage", "history")}
        | {"segments": [task["segments"][0], task["segments"][-1]]}
        for task in found["tasks"]
        if task["folder"].endswith(str(TASK))
    ]
    held("inspection_damaged.json", masked(found, "damage", "torn"))
