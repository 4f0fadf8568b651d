"""The kernels in the image are those that events meet: a process that has it never needs Numba."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from railgun import kernels
from railgun.interpreter.plain import _put
from railgun.kernels import compile_all, loaded_kernels, make_image
from reservoir.native import image as kernel_image
from reservoir.native.jit import use_numba

_WITHOUT_NUMBA = """
import json, sys
from railgun import kernels
from reservoir.native.jit import is_image
kernels._compile_rare = lambda: None
kernels.compile_all()
print(json.dumps([is_image(), "numba" in sys.modules]))
"""
_BY_NUMBA = """
import json
from railgun.kernels import loaded_kernels
from railgun.kernels import compile_all
from reservoir.native.jit import use_numba
use_numba()
compile_all()
print(json.dumps(loaded_kernels()))
"""

# Names of kernels in what Python runs that are not in the image. Functions of `rare` are entry points: kernels alone
# call them, by address.
_LEFT_OUT = """
import importlib, inspect, json, sys
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from reservoir.native.jit import Later, is_image

ROOMS = "railgun", "reservoir", "frontend"
for path in [each for room in ROOMS for each in Path(sys.argv[1], room).rglob("*.py")]:
    if path.stem not in ("__main__", "kernel_image_build", "numba_jit", "intrinsics"):
        name = ".".join(path.relative_to(sys.argv[1]).with_suffix("").parts)
        importlib.import_module(name.removesuffix(".__init__"))

def functions(holder):
    for value in [each for each in vars(holder).values() if not isinstance(each, Later)]:
        for each in (value, *(getattr(value, name, None) for name in ("__func__", "fget", "func"))):
            if isinstance(each, FunctionType):
                yield inspect.unwrap(each)
        if isinstance(value, type) and isinstance(holder, ModuleType) and value.__module__ == holder.__name__:
            yield from functions(value)

def codes(code):
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from codes(each)

found, count = [], 0
for module in [each for name, each in sys.modules.items() if name.split(".")[0] in ROOMS]:
    for function in functions(module):
        count += 1
        for code in codes(function.__code__):
            used = [function.__globals__.get(name) for name in code.co_names]
            modules = [each for each in used if isinstance(each, ModuleType) and each.__name__.split(".")[0] in ROOMS]
            used += [vars(each).get(name) for each in modules for name in code.co_names]
            if function.__module__ != "railgun.interpreter.rare" and any(isinstance(each, Later) for each in used):
                found.append(function.__module__ + "." + code.co_name)
print(json.dumps([is_image(), count, sorted(set(found))]))
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


def test_nothing_that_python_calls_is_left_out() -> None:
    _new_process("-m", "railgun.kernels")
    is_image, functions, found = json.loads(_new_process("-c", _LEFT_OUT, str(Path(__file__).parents[1])))
    assert is_image
    assert functions > 2_000
    assert found == []


def test_kernels_and_entry_points_are_told_once_each() -> None:
    use_numba()
    compile_all()
    found = [json.dumps(each) for each in loaded_kernels()]
    assert len(found) == len(set(found))
    assert ["railgun.interpreter.run", "run", ["int64"]] in [json.loads(each) for each in found]
    assert ["railgun.interpreter.rare", "add_rare", None] in [json.loads(each) for each in found]
    # Of what happens now and then only: a new edge amid sealed chunks, the sweep after a dropped metric.
    assert ["reservoir.cursors.edges", "frame_passed", ["int64"] * 3] in [json.loads(each) for each in found]
    assert ["railgun.task.retirement", "reset_cells", ["int64"] * 8] in [json.loads(each) for each in found]


def test_kernels_of_kernels_are_left_out() -> None:
    """A process that compiles them has them too, with arguments that have no plain names."""
    use_numba()
    from numba.core import types

    _put((0, 0), 0, np.uint64(1), np.uint8(0))
    assert _put.overloads
    names = {each for _, _, arguments in loaded_kernels() for each in arguments or ()}
    assert names <= set(dir(types))


@pytest.mark.parametrize("is_whole", [False, True])
def test_an_image_that_is_not_whole_is_made_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_whole: bool
) -> None:
    kernels.main()
    data = kernel_image.path().read_bytes()
    place = tmp_path / "kernels.image"
    place.write_bytes(data if is_whole else data[:-1])
    made = 0

    def made_again() -> bool:
        nonlocal made
        made += 1
        return True

    monkeypatch.setattr(kernel_image, "path", lambda: place)
    monkeypatch.setattr(kernels, "is_image", lambda: False)
    monkeypatch.setattr(kernels, "compile_and_link", made_again)
    kernels.main()
    assert made == (0 if is_whole else 1)


@pytest.mark.parametrize("misses", [{}, {"int64": 1}])
def test_only_a_process_that_compiled_nothing_links(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, misses: dict[str, int]
) -> None:
    use_numba()
    place = tmp_path / "cache" / "kernels.image"
    function = SimpleNamespace(stats=SimpleNamespace(cache_misses=misses), overloads={})
    monkeypatch.setattr(kernel_image, "path", lambda: place)
    monkeypatch.setattr(kernels, "_functions", lambda: [function])
    monkeypatch.setattr(kernels, "entry_points", list)
    assert make_image() == (not misses)
    assert place.exists() == (not misses)
