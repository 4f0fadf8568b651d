"""The kernels in the image are those that events meet: a process that has it never needs Numba."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from railgun import kernels
from reservoir.native import image as kernel_image
from tests.forked import ROOT

_WITHOUT_NUMBA = """
import json, sys
from reservoir.native.jit import is_image
from tests.kernel_events import play
play()
print(json.dumps([is_image(), "numba" in sys.modules]))
"""
# What Python has called has no arguments but words. Functions that only kernels call are loaded with their callers.
_BY_NUMBA = """
import json
from railgun.kernel_list import kernels
from reservoir.native.jit import entry_points, use_numba
from reservoir.native.shared_cache import dispatchers
from tests.kernel_events import play
use_numba()
play()
called = [
    [each.__module__, each.__name__, list(map(str, types))]
    for each in dispatchers(["railgun", "reservoir"])
    for types in each.overloads
]
called += [[each.__wrapped__.__module__, each.__wrapped__.__name__, None] for each in entry_points()]
listed = [[each.module.__name__, each.name, each.types] for each in kernels()]
print(json.dumps([called, listed]))
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
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=True, cwd=ROOT)
    return done.stdout


def test_what_is_linked_is_all_that_is_called() -> None:
    _new_process("-m", "railgun.kernels")
    assert json.loads(_new_process("-c", _WITHOUT_NUMBA)) == [True, False]
    called, listed = json.loads(_new_process("-c", _BY_NUMBA))
    assert [each for each in called if each not in listed] == []
    image = kernel_image.load()
    assert image is not None
    linked = [*image.calls, *image.addresses]
    assert sorted(linked) == sorted((module, name) for module, name, _ in listed)
    # Some are called only rarely: by evictions and sweeps, amid sealed chunks, for replies of nodes.
    assert 50 < len(called) < len(listed)


def test_nothing_that_python_calls_is_left_out() -> None:
    _new_process("-m", "railgun.kernels")
    is_image, functions, found = json.loads(_new_process("-c", _LEFT_OUT, str(ROOT)))
    assert is_image
    assert functions > 2_000
    assert found == []


@pytest.mark.parametrize("is_whole", [False, True])
def test_an_image_that_is_not_whole_is_made_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_whole: bool
) -> None:
    kernels.main()
    data = kernel_image.path().read_bytes()
    place = tmp_path / "kernels.image"
    place.write_bytes(data if is_whole else data[:-1])
    made = []
    monkeypatch.setattr(kernel_image, "path", lambda: place)
    monkeypatch.setattr(kernels, "is_image", lambda: False)
    monkeypatch.setattr(kernels, "_missing", list)
    monkeypatch.setattr(kernels, "load_all", lambda: made.append("made"))
    kernels.main()
    assert len(made) == (not is_whole)
