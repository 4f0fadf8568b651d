"""The kernels that are noted are those that events meet: loading them leaves nothing to load or compile later."""

import json
import subprocess
import sys
from typing import Any

import numpy as np
from numba.core import types

from railgun import kernel_list
from railgun.interpreter.plain import _put
from railgun.kernel_list import load_all, loaded_kernels
from railgun.kernels import compile_all

_LOADED_THEN_CALLED = """
import json
from railgun.kernel_list import load_all, loaded_kernels
from railgun.kernels import compile_all
was_noted, loaded = load_all(), loaded_kernels()
compile_all()
print(json.dumps([was_noted, loaded, loaded_kernels()]))
"""


def _in_a_new_process() -> Any:
    command = [sys.executable, "-c", _LOADED_THEN_CALLED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=True)
    return json.loads(done.stdout)


def test_what_was_noted_is_all_that_is_called() -> None:
    compile_all()
    was_noted, loaded, called = _in_a_new_process()
    assert was_noted
    assert loaded == called
    assert len(loaded) > 40


def test_kernels_and_entry_points_are_told_once_each() -> None:
    compile_all()
    found = [json.dumps(each) for each in loaded_kernels()]
    assert len(found) == len(set(found))
    assert ["railgun.interpreter.run", "run", ["int64"]] in [json.loads(each) for each in found]
    assert ["railgun.interpreter.rare", "add_rare", None] in [json.loads(each) for each in found]


def test_kernels_of_kernels_are_left_out() -> None:
    """A process that compiles them has them too, with arguments that have no plain names."""
    _put((0, 0), 0, np.uint64(1), np.uint8(0))
    assert _put.overloads
    names = {each for _, _, arguments in loaded_kernels() for each in arguments or ()}
    assert names <= set(dir(types))


def test_without_a_note_nothing_is_loaded(monkeypatch: Any, tmp_path: Any) -> None:
    monkeypatch.setattr(kernel_list, "_path", lambda: tmp_path / "none.json")
    assert not load_all()
    (tmp_path / "none.json").write_text('[["railgun.interpreter.run", "run", ["UniTuple(int64 x 2)"]]]')
    assert not load_all()
    (tmp_path / "none.json").write_bytes(b'[["railgun.inter')
    assert not load_all()
