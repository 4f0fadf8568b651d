"""The goldens can fail: a difference is told, writing them is no way to pass, and none is left behind."""

import json
import re
from pathlib import Path

import pytest

from tests.golden.promises import EXPECTED, SWITCH, held, held_bytes, kind_of, masked, rooted

TESTS = Path(__file__).parents[1]


def test_a_difference_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    (tmp_path / "a.json").write_text('{\n "cut_ms": 1\n}\n')
    held("a.json", {"cut_ms": 1}, tmp_path)
    with pytest.raises(pytest.fail.Exception, match=r'-  ?"cut_ms": 1\n\+  ?"until_ms": 1'):
        held("a.json", {"until_ms": 1}, tmp_path)
    with pytest.raises(pytest.fail.Exception, match="promise is broken"):
        held("missing.json", {}, tmp_path)


def test_the_order_of_keys_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    held_bytes("a.json", b"", tmp_path)
    (tmp_path / "a.json").write_text('{\n "a": 1,\n "b": 2\n}\n')
    with pytest.raises(pytest.fail.Exception):
        held("a.json", {"b": 2, "a": 1}, tmp_path)


def test_what_is_written_anew_fails_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "write")
    with pytest.raises(pytest.fail.Exception):
        held("a.json", {"a": b"\1"}, tmp_path)
    assert json.loads((tmp_path / "a.json").read_text()) == {"a": "hex:01"}
    held("a.json", {"a": b"\1"}, tmp_path)
    monkeypatch.setenv(SWITCH, "1")
    with pytest.raises(pytest.fail.Exception, match="means nothing"):
        held("a.json", {"a": b"\1"}, tmp_path)


def test_volatile_values_keep_their_names_and_kinds() -> None:
    body = {"at": 1.5, "in": [{"at": 7, "is": True}], "of": {"at": [1, 2], "no": None}}
    assert masked(body, "at", "of") == {
        "at": "<float>",
        "in": [{"at": "<int>", "is": True}],
        "of": {"at": ["<int>"], "no": None},
    }
    assert kind_of(True) == "<bool>"
    assert rooted({"a": ["/x/y/z"]}, Path("/x/y")) == {"a": ["<folder>/z"]}


def test_every_file_is_held_by_a_test() -> None:
    named: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        if "golden.promises" in text:
            named.update(re.findall(r'"([a-z_]+\.[a-z]+)"', text))
    assert [path.name for path in sorted(EXPECTED.iterdir()) if path.name not in named] == []
