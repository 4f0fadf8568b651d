"""What the cache of compiled kernels depends on: every file that code or constants of a kernel come from."""

import importlib
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from numba.core.dispatcher import Dispatcher

from reservoir.native import sources as kernel_sources
from reservoir.native.jit import use_numba
from reservoir.native.sources import digest, sources

ROOT = Path(__file__).parents[3]


def globals_of(function: FunctionType) -> set[str]:
    def names(code: CodeType) -> set[str]:
        inner = [names(each) for each in code.co_consts if isinstance(each, CodeType)]
        return set(code.co_names).union(*inner)

    return names(function.__code__)


def test_every_file_a_kernel_calls_into_is_among_them() -> None:
    for path in sources():
        importlib.import_module(
            ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        )
    use_numba()
    found = set(kernel_sources.kernel_sources())
    kernels = 0
    for module in [
        each for name, each in sys.modules.items() if name.split(".")[0] in ("railgun", "reservoir")
    ]:
        for value in [each for each in vars(module).values() if isinstance(each, Dispatcher)]:
            function: Any = value.py_func
            kernels += 1
            assert Path(function.__code__.co_filename) in found
            for name in globals_of(function):
                used = function.__globals__.get(name)
                code = getattr(getattr(used, "py_func", used), "__code__", None)
                if (
                    code is not None
                    and ROOT in Path(code.co_filename).parents
                    and ".venv" not in code.co_filename
                ):
                    assert Path(code.co_filename) in found, f"{function.__name__} calls {name}"
    assert kernels > 500


def test_no_room_with_kernels_is_forgotten() -> None:
    found = set(kernel_sources.kernel_sources())
    rooms = [path for room in ("railgun", "reservoir", "frontend") for path in (ROOT / room).rglob("*.py")]
    assert len(rooms) > 300
    for path in rooms:
        if "\n@jit\n" in path.read_text(encoding="utf-8"):
            assert path in found


def test_rooms_are_found_by_the_kernels_in_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = "from reservoir.native.jit import jit\n\n\n@jit\ndef one(a):\n    return a\n"
    texts = {
        "frontend/page.py": "",
        "railgun/start.py": "\nfrom reservoir.native.image_build import build\n",
        "railgun/new/room/kernels.py": f"\nfrom railgun.other import codes\n{kernel}",
        "railgun/new/calls.py": "\nfrom railgun.new.room import kernels\n",
        "railgun/other/codes.py": "\nX = 1\n",
        "railgun/other/__init__.py": "",
        "reservoir/hash.py": kernel,
        "reservoir/layout.py": "",
        "reservoir/files/disk.py": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(kernel_sources, "_ROOT", tmp_path)
    for each in (kernel_sources.sources, kernel_sources.kernel_sources, kernel_sources._rooms):
        monkeypatch.setattr(kernel_sources, each.__name__, cache(each.__wrapped__))

    def names(paths: Iterable[Path]) -> set[str]:
        return {str(path.relative_to(tmp_path)) for path in paths}

    imported = {"railgun/other/__init__.py", "railgun/other/codes.py"}
    of_kernels = {"railgun/new/room/kernels.py", "reservoir/hash.py", *imported}
    called = {"railgun/new/calls.py", "reservoir/layout.py", "railgun/start.py"}
    assert names(kernel_sources.kernel_sources()) == of_kernels
    assert names(kernel_sources.sources()) == of_kernels | called


def test_constants_count_and_callers_do_not() -> None:
    found = {str(path.relative_to(ROOT)) for path in kernel_sources.kernel_sources()}
    assert {"reservoir/layout.py", "railgun/aggregators/codes.py", "reservoir/native/jit.py"} <= found
    assert not {"reservoir/reservoir.py", "railgun/task/processor.py", "railgun/language/parser.py"} & found


def test_the_digest_is_of_what_is_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {Path("a.py"): b"X = 1", Path("b.py"): b"Y = 1"}
    monkeypatch.setattr(kernel_sources, "sources", lambda: texts)
    before = digest(texts)
    assert len(before) == 16
    assert digest([Path("a.py")]) != before
    texts[Path("b.py")] = b"Y = 2"
    assert digest(texts) != before


def test_the_list_of_what_is_called_is_among_the_sources() -> None:
    """An image has what was called: one that was made by another list is none."""
    assert ROOT / "railgun" / "kernel_list.py" in sources()
