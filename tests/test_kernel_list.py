"""The kernels that are noted are those that events meet: loading them leaves nothing to load or compile later."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numba.core import types

from railgun import kernel_list
from railgun.interpreter.plain import _put
from railgun.kernel_list import load_all, loaded_kernels, note_all
from railgun.kernels import compile_all

_LOADED_THEN_CALLED = """
import json
from railgun.kernel_list import load_all, loaded_kernels, note_all
from railgun.kernels import compile_all
was_noted, loaded = load_all(), loaded_kernels()
compile_all()
print(json.dumps([was_noted, note_all(), loaded, loaded_kernels()]))
"""


def _new_process(*arguments: str) -> str:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, check=True).stdout


def test_what_was_noted_is_all_that_is_called() -> None:
    _new_process("-m", "railgun.kernels")
    was_noted, could_note, loaded, called = json.loads(_new_process("-c", _LOADED_THEN_CALLED))
    assert was_noted
    assert could_note
    assert loaded == called
    # Those that only other kernels call are hundreds.
    assert 40 < len(loaded) < 100


def test_kernels_and_entry_points_are_told_once_each() -> None:
    compile_all()
    found = [json.dumps(each) for each in loaded_kernels()]
    assert len(found) == len(set(found))
    assert ["railgun.interpreter.run", "run", ["int64"]] in [json.loads(each) for each in found]
    assert ["railgun.interpreter.rare", "add_rare", None] in [json.loads(each) for each in found]
    # Of what happens now and then only: a new edge amid sealed chunks, the sweep after a dropped metric.
    assert ["reservoir.edges", "frame_passed", ["int64"] * 3] in [json.loads(each) for each in found]
    assert ["railgun.task.row_reset", "reset_cells", ["int64"] * 8] in [json.loads(each) for each in found]


def test_kernels_of_kernels_are_left_out() -> None:
    """A process that compiles them has them too, with arguments that have no plain names."""
    _put((0, 0), 0, np.uint64(1), np.uint8(0))
    assert _put.overloads
    names = {each for _, _, arguments in loaded_kernels() for each in arguments or ()}
    assert names <= set(dir(types))


@pytest.mark.parametrize("misses", [{}, {"int64": 1}])
def test_only_a_process_that_compiled_nothing_notes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, misses: dict[str, int]
) -> None:
    place = tmp_path / "cache" / "note.json"
    function = SimpleNamespace(stats=SimpleNamespace(cache_misses=misses), overloads={})
    monkeypatch.setattr(kernel_list, "_path", lambda: place)
    monkeypatch.setattr(kernel_list, "_functions", lambda: [function])
    assert note_all() == (not misses)
    assert place.exists() == (not misses)


def test_without_a_note_nothing_is_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kernel_list, "_path", lambda: tmp_path / "none.json")
    assert not load_all()
    (tmp_path / "none.json").write_text('[["railgun.interpreter.run", "run", ["UniTuple(int64 x 2)"]]]')
    assert not load_all()
    (tmp_path / "none.json").write_bytes(b'[["railgun.inter')
    assert not load_all()
