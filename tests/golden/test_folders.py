"""Folders that earlier releases left of histories and deepenings, on nodes and in an engine, go on exactly."""

import json
from pathlib import Path

import pytest

from tests.golden.make_folders import ENGINE, FOLDERS, GO_ON, engine_goes_on, node_goes_on


@pytest.mark.parametrize("name", list(GO_ON))
def test_a_task_of_a_node(name: str, tmp_path: Path) -> None:
    expected = json.loads((FOLDERS / name / "expected.json").read_text(encoding="utf-8"))
    assert len(expected) >= 20
    assert node_goes_on(name, tmp_path) == expected


def test_an_engine_whose_stream_is_deepened(tmp_path: Path) -> None:
    expected = json.loads((FOLDERS / ENGINE / "expected.json").read_text(encoding="utf-8"))
    found = engine_goes_on(tmp_path)
    assert found == expected
    assert found[0]["metrics"] != found[-1]["metrics"]
