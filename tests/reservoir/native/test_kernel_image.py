"""Kernels of an image, as Python calls them: what they take, what they give, and an image that is not whole."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import railgun.kernels
from reservoir.native import image as kernel_image
from reservoir.native.jit import address, keeps_interpreter, use_numba
from reservoir.siphash import siphash128

_SIPHASH = ("reservoir.siphash", "siphash128")


@pytest.fixture(scope="module")
def image() -> kernel_image.Image:
    railgun.kernels.main()
    found = kernel_image.load()
    assert found is not None
    return found


def test_integers_of_any_kind(image: kernel_image.Image) -> None:
    call = image.calls[_SIPHASH]
    data = np.frombuffer(b"some bytes to be hashed.", np.uint8)
    given = call(address(data), 24, 1, 2)
    assert given == call(np.int64(address(data)), np.int32(24), np.uint64(1), 2)
    assert given != call(address(data), 23, 1, 2)
    assert [type(each) for each in given] == [int, int]
    use_numba()
    assert given == siphash128(address(data), 24, np.uint64(1), np.uint64(2))


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ((), TypeError),
        ((0, 0, 0), TypeError),
        ((0,) * 5, TypeError),
        ((0, 0, 0, 0.0), TypeError),
        ((0, 0.5, 0, 0), TypeError),
        ((0, "x", 0, 0), TypeError),
        ((0, None, 0, 0), TypeError),
        ((0, 2**63, 0, 0), OverflowError),
        ((0, -(2**63) - 1, 0, 0), OverflowError),
        ((0, 0, -1, 0), OverflowError),
        ((0, 0, 2**64, 0), OverflowError),
    ],
)
def test_anything_else_is_refused(
    image: kernel_image.Image, arguments: tuple[Any, ...], kind: type[Exception]
) -> None:
    for _ in range(2):
        with pytest.raises(kind):
            image.calls[_SIPHASH](*arguments)
        # Numba in the process takes nothing from the image.
        use_numba()
        again = kernel_image.load()
        assert again is not None
        image = again


def test_numbers_that_could_be_an_error_are_none(image: kernel_image.Image) -> None:
    """-1 is how CPython's conversions say that there is one."""
    data = np.frombuffer(b"some bytes to be hashed.", np.uint8)
    given = image.calls[_SIPHASH](address(data), 24, 2**64 - 1, 2**64 - 1)
    use_numba()
    assert given == siphash128(address(data), 24, np.uint64(2**64 - 1), np.uint64(2**64 - 1))


@pytest.mark.parametrize("damage", ["none", "gone", "cut", "bit", "line", "empty", "zeros"])
def test_an_image_that_is_not_whole_is_none(
    image: kernel_image.Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    data = bytearray(kernel_image.path().read_bytes())
    if damage == "cut":
        del data[-100:]
    elif damage == "bit":
        data[-1000] ^= 1
    elif damage == "line":
        data[10] ^= 1
    elif damage == "empty":
        data.clear()
    elif damage == "zeros":
        data[:] = bytes(4)
    place = tmp_path / "kernels.image"
    if damage != "gone":
        place.write_bytes(data)
    monkeypatch.setattr(kernel_image, "path", lambda: place)
    assert (kernel_image.load() is None) == (damage != "none")


class Counting(threading.Thread):
    """Counts whenever it gets the interpreter lock, which it lets go of at once."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.count = 0
        self._ended = False
        self.start()

    def run(self) -> None:
        while not self._ended:
            self.count += 1
            time.sleep(0)

    def end(self) -> None:
        self._ended = True
        self.join()


def test_a_thread_may_keep_the_interpreter(
    image: kernel_image.Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, call = np.zeros(1 << 24, np.uint8), image.calls[_SIPHASH]
    where, patience_s = address(data), sys.getswitchinterval()
    keeps = type(keeps_interpreter)()
    monkeypatch.setattr(keeps, "_keeper", image.keeper)
    counting = Counting()

    def counted() -> int:
        """How often the other thread had the interpreter while a long kernel ran in this one."""
        before = counting.count
        call(where, len(data), 1, 2)
        return counting.count - before

    # This thread lets go of it in kernels alone.
    sys.setswitchinterval(1e6)
    try:
        while not counted():
            pass
        for _ in range(10):
            with keeps:
                assert not counted()
        with pytest.raises(TypeError), keeps:
            call(0)
        while not counted():
            pass
        image.keeper[0] = counting.ident or 0
        while not counted():
            pass
    finally:
        image.keeper[0] = 0
        sys.setswitchinterval(patience_s)
        counting.end()


@pytest.mark.parametrize("name", ["NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_ENABLE_AVX"])
def test_an_image_is_of_the_processor_that_numba_is_told(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    found = kernel_image.path.__wrapped__()
    monkeypatch.setenv(name, "0")
    assert kernel_image.path.__wrapped__() != found


_SWITCHED = """
import sys
from railgun.interpreter import rare
from railgun.interpreter import plain
from railgun.state.rows import eviction
from reservoir import siphash
from reservoir.native import jit as compiled
from reservoir.native.jit import ld64
import numpy as np
assert compiled.is_image() and "numba" not in sys.modules
held, later = siphash.siphash128, plain._put
data = np.frombuffer(b"some bytes to be hashed.", np.uint8)
before = held(compiled.address(data), 24, 1, 2)
assert compiled.entry_address(rare.reset_rare) and not compiled.entry_points()
assert type(held).__name__ == "builtin_function_or_method" and type(later) is compiled.Later
assert later.py_func.__name__ == "_put"
assert not compiled.is_image() and "numba" in sys.modules
assert siphash.siphash128.py_func.__name__ == "siphash128"
assert compiled.entry_address(rare.reset_rare) and compiled.entry_points()
assert ld64 is not compiled.ld64 and plain._put is later.made
one = np.uint64
assert before == held(compiled.address(data), 24, 1, 2)
assert before == siphash.siphash128(compiled.address(data), 24, one(1), one(2))
"""

_MEANWHILE = """
import threading
from reservoir.native import jit as compiled
def kernel(): pass
made = []
other = threading.Thread(target=lambda: made.append(compiled.jit(kernel)))
with compiled._lock:
    other.start()
    other.join(0.2)
    assert not made
other.join()
assert type(made[0]) is compiled.Later
"""


def test_a_kernel_is_not_given_while_numba_takes_over(image: kernel_image.Image) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _MEANWHILE], capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr


def test_numba_takes_over_where_another_kernel_is_called(image: kernel_image.Image) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SWITCHED], capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_cannot_be_saved_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "kernels.image"
    place.mkdir()
    monkeypatch.setattr(kernel_image, "path", lambda: place)
    with pytest.raises(OSError, match="directory"):
        kernel_image.save(kernel_image.Header([], []), b"code")
    assert list(tmp_path.iterdir()) == [place]


def test_where_no_kernel_can_be_kept_none_is_in_the_sources(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    environment = {**os.environ, "RAILGUN_KERNEL_CACHE": str(tmp_path / "file" / "kernels")}
    environment.pop("NUMBA_CACHE_DIR", None)
    code = "import os; from reservoir.native import numba; print(os.environ['NUMBA_CACHE_DIR'])"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=280, check=True
    )
    assert "kernels are compiled at every start" in done.stderr
    assert "railgun-kernels-" in done.stdout
    assert not Path(done.stdout.strip()).exists()
