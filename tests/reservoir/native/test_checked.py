"""Checked kernels: each access outside of what kernels were handed ends the process, and no other does."""

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from reservoir.native.checked import Ranges
from tests.forked import ROOT

_KERNELS = """
import numpy as np
from reservoir.native.jit import address, array_at, bytes_address, copy_bytes, jit, ld8, ld64, move_bytes, st64
from reservoir.native.jit import load_be64, stack_words, store_be64, view_u64

@jit
def load(at): return ld64(at)

@jit
def load_byte(at): return ld8(at)

@jit
def load_swapped(at): return load_be64(at)

@jit
def store(at): st64(at, np.uint64(1))

@jit
def store_swapped(at): store_be64(at, np.uint64(1))

@jit
def copy(to, source, n): copy_bytes(to, source, n)

@jit
def move(to, source, n): move_bytes(to, source, n)

@jit
def item(at, n, place): return view_u64(at, n)[place]

@jit
def own_word():
    at = stack_words(2)
    st64(at + 8, np.uint64(7))
    return ld64(at + 8)

# In a mapping of its own, so that its neighbours are not other arrays.
a = np.zeros(1 << 20, np.uint64)
b = np.arange(4, dtype=np.uint64)
at, size, other = address(a), a.nbytes, address(b)
text = b"0123456789abcdef"
"""
_ALLOWED = """
assert load(at) == load(at + size - 8) == load_byte(at + size - 1) == load_swapped(other) == 0
store(at + size - 8); store_swapped(at); copy(at, other, 32); move(at + 8, at, 32); copy(at + size, other, 0)
assert item(at, 5, 4) == 3 and own_word() == 7 and load_byte(bytes_address(text) + 15) == ord("f")
assert list(array_at(at, 2, np.uint64)) == [0, 0]
c = np.frombuffer(text, np.uint8)[4:]
assert load_byte(address(c)) == ord("4")
assert load(address(a[10:20]) - 8) == 0
"""
_REFUSED = {
    "a load behind its end": "load(at + size)",
    "a load across its end": "load(at + size - 7)",
    "a load before its start": "load(at - 8)",
    "a byte behind its end": "load_byte(at + size)",
    "big-endian words": "load_swapped(at + size - 4)",
    "a store": "store(at + size)",
    "a big-endian store": "store_swapped(at - 1)",
    "a copy that reads too much": "copy(at, other, 33)",
    "a copy that writes too much": "copy(other, at, 33)",
    "a negative count": "copy(at, other, -1)",
    "a move": "move(other, other + 8, 32)",
    "a view": "item(at, (1 << 20) + 1, 0)",
    "an array in Python": "array_at(at + size, 1, np.uint64)",
    "what is freed": "del a; load(at)",
    "nothing that was handed in": "load(4096)",
}


def _run(code: str, kernels: Path, checked: str = "1") -> subprocess.CompletedProcess[str]:
    program = kernels / "kernels.py"
    program.write_text(f"{_KERNELS}\n{code}\n", encoding="utf-8")
    environment = {**os.environ, "RAILGUN_CHECKED": checked, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=120, env=environment
    )


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


def test_what_kernels_were_handed_is_theirs(kernels: Path) -> None:
    ran = _run(_ALLOWED, kernels)
    assert not ran.returncode, ran.stderr


@pytest.mark.parametrize("code", [pytest.param(code, id=name) for name, code in _REFUSED.items()])
def test_an_access_outside_ends_the_process(kernels: Path, code: str) -> None:
    ran = _run(f"{code}\nprint('went on')", kernels)
    assert ran.returncode == -6, ran.stdout
    assert "checked kernels: " in ran.stderr
    assert "kernels.py" in ran.stderr
    assert not ran.stdout


def test_an_index_beyond_a_view_is_an_error(kernels: Path) -> None:
    ran = _run("item(at, 5, 5)", kernels)
    assert "IndexError" in ran.stderr


@pytest.mark.parametrize("seed", range(20))
def test_ranges_against_a_list(seed: int) -> None:
    chance = random.Random(seed)
    ranges, living = Ranges(), dict[int, tuple[int, int, NDArray[np.int64]]]()
    for step in range(300):
        if living and chance.random() < 0.4:
            del living[chance.choice(list(living))]
        else:
            # What cannot be referred to weakly is kept instead.
            owner = np.zeros(1, np.int64)
            start, size = chance.randrange(60), chance.randrange(9)
            living[step] = start, size, owner
            ranges.add(start, size, owner)
            del owner
        for _ in range(10):
            start, size = chance.randrange(70), chance.randrange(1, 6)
            expected = any(
                first <= start and start + size <= first + length for first, length, _ in living.values()
            )
            assert ranges.holds(start, size) == expected
            assert int(ranges.table[0]) == len({each[:2] for each in living.values()})


def test_an_owner_that_cannot_be_watched_is_kept_for_a_while() -> None:
    ranges = Ranges()
    ranges.add(0, 4, b"first")
    for number in range(1_000):
        assert ranges.holds(0, 4)
        ranges.add(100 + number, 1, b"other")
    assert not ranges.holds(0, 4)
    assert ranges.holds(1_099, 1)
