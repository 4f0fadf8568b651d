"""The kernels in the image are those that events meet: a process that has it never needs Numba."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from railgun import kernel_list
from railgun.interpreter.plain import _put
from railgun.kernel_list import loaded_kernels, make_image
from railgun.kernels import compile_all
from reservoir import kernel_image
from reservoir.compiled import use_numba

_WITHOUT_NUMBA = """
import json, sys
from railgun import kernels
from reservoir.compiled import is_image
kernels._compile_rare = lambda: None
kernels.compile_all()
print(json.dumps([is_image(), "numba" in sys.modules]))
"""
_BY_NUMBA = """
import json
from railgun.kernel_list import loaded_kernels
from railgun.kernels import compile_all
from reservoir.compiled import use_numba
use_numba()
compile_all()
print(json.dumps(loaded_kernels()))
"""


def _new_process(*arguments: str) -> str:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, check=True).stdout


def test_what_is_linked_is_all_that_is_called() -> None:
    _new_process("-m", "railgun.kernels")
    assert json.loads(_new_process("-c", _WITHOUT_NUMBA)) == [True, False]
    called = {(module, name) for module, name, _ in json.loads(_new_process("-c", _BY_NUMBA))}
    image = kernel_image.load()
    assert image is not None
    assert image.calls.keys() | image.addresses.keys() == called
    # Those that only other kernels call are hundreds.
    assert 40 < len(called) < 100


def test_kernels_and_entry_points_are_told_once_each() -> None:
    use_numba()
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
    use_numba()
    from numba.core import types

    _put((0, 0), 0, np.uint64(1), np.uint8(0))
    names = {each for _, _, arguments in loaded_kernels() for each in arguments or ()}
    assert names <= set(dir(types))


@pytest.mark.parametrize("misses", [{}, {"int64": 1}])
def test_only_a_process_that_compiled_nothing_links(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, misses: dict[str, int]
) -> None:
    use_numba()
    place = tmp_path / "cache" / "kernels.image"
    function = SimpleNamespace(stats=SimpleNamespace(cache_misses=misses), overloads={})
    monkeypatch.setattr(kernel_image, "path", lambda: place)
    monkeypatch.setattr(kernel_list, "_functions", lambda: [function])
    monkeypatch.setattr(kernel_list, "entry_points", list)
    assert make_image() == (not misses)
    assert place.exists() == (not misses)
