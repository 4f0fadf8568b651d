"""Processes that compile together: none compiles what another compiles, and code is found by its own signature."""

import select
import subprocess
import sys
from pathlib import Path

import pytest

_KERNELS = """
from reservoir.native.numba import jit

@jit
def inner(a):
    return a + a

@jit
def outer(a):
    return inner(a) + inner(a)
"""
_BEGIN = """
import sys
from pathlib import Path
from numba.core import types
import kernels
from reservoir.native.shared_cache import dispatchers, share

def says(word):
    print(word, flush=True)
"""
# Stops while it compiles `inner`, of which it holds the lock by then.
_FIRST = (
    _BEGIN
    + """
share(dispatchers(["kernels"]), Path("locks"))
compiles = kernels.inner._compiler.compile

def stopped(*arguments):
    says("compiles")
    if sys.stdin.readline() == "fail\\n":
        raise SystemExit("it failed")
    return compiles(*arguments)

kernels.inner._compiler.compile = stopped
says("begins")
kernels.inner.compile((getattr(types, sys.argv[1]),))
says("has it")
"""
)
_SECOND = (
    _BEGIN
    + """
share(dispatchers(["kernels"]), Path("locks"))
says("begins")
kernels.outer.compile((types.int64,))
says(sum(kernels.inner.stats.cache_misses.values()))
"""
)
_LOADED = (
    _BEGIN
    + """
for each in ("int64", "uint64"):
    kernels.inner.compile((getattr(types, each),))
says(sum(kernels.inner.stats.cache_misses.values()))
says(kernels.inner(-3))
"""
)


class Compilers:
    """Processes that compile the same two kernels."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "kernels.py").write_text(_KERNELS)

    def start(self, code: str, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-c", code, *words],
            cwd=self._folder,
            env={
                "NUMBA_CACHE_DIR": str(self._folder / "cache"),
                "PYTHONPATH": str(Path(__file__).parents[3]),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def compilers(tmp_path: Path) -> Compilers:
    return Compilers(tmp_path)


def _line(child: "subprocess.Popen[str]") -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def _tell(child: "subprocess.Popen[str]", word: str) -> None:
    assert child.stdin is not None
    child.stdin.write(word + "\n")
    child.stdin.flush()


def _is_waiting(child: "subprocess.Popen[str]") -> bool:
    return select.select([child.stdout], [], [], 2.0)[0] == []


@pytest.mark.parametrize(("word", "misses"), [("go on", "0"), ("fail", "1")], ids=["saved", "failed"])
def test_what_another_compiles_is_waited_for(compilers: Compilers, word: str, misses: str) -> None:
    """It is loaded then. If the other process fails, it is compiled after all."""
    with compilers.start(_FIRST, "int64") as first:
        assert [_line(first), _line(first)] == ["begins", "compiles"]
        with compilers.start(_SECOND) as second:
            assert _line(second) == "begins"
            assert _is_waiting(second)
            _tell(first, word)
            assert _line(second) == misses


def test_two_signatures_of_one_function_are_compiled_in_turn(compilers: Compilers) -> None:
    """Else both would take one name for their code, and the index would name one's for the other's signature."""
    with compilers.start(_FIRST, "uint64") as first:
        assert [_line(first), _line(first)] == ["begins", "compiles"]
        with compilers.start(_FIRST, "int64") as second:
            assert _line(second) == "begins"
            assert _is_waiting(second)
            for each in (first, second):
                _tell(each, "go on")
            assert [_line(second), _line(second)] == ["compiles", "has it"]
    with compilers.start(_LOADED) as loaded:
        assert [_line(loaded), _line(loaded)] == ["0", "-6"]
