"""Checked kernels: with RAILGUN_CHECKED=1 each access of a kernel has to lie in memory that Python has handed it.

Kernels are given addresses as plain integers, and nothing keeps them within their arrays. In this mode `address` notes
the range of each array, and every load, store, copy and view of a kernel looks its bytes up there. Indexes into views
are checked by Numba. An access outside ends the process (SIGABRT), with the access, the nearest ranges and Python's
stack on standard error. It is for tests: kernels take many times as long, and there is no image of them.

A range counts until the object that owns the memory is gone. Owners that cannot be referred to weakly, such as `bytes`,
are kept alive for a while instead. A kernel's own stack counts too.
"""

import os
import sys
import threading
import traceback
import weakref
from collections import deque
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

CHECK_SYMBOL: Final = "railgun_check_access"
"""By this name kernels call what checks an access: void(int64 address, int64 bytes)."""

_KEPT = 1_000
_Range = tuple[int, int]


class Ranges:
    """The memory that kernels may use. All methods hold the interpreter lock; kernels read `table` without it.

    table int64[3]: how many ranges there are, and the addresses of two arrays in the order of the ranges' starts: the
        starts, and the greatest end of all ranges up to there. So an access lies in a range if and only if the
        greatest end of those that start before it lies behind it.
    """

    def __init__(self) -> None:
        self.table: NDArray[np.int64] = np.zeros(3, np.int64)
        self._n = 0
        self._starts, self._ends, self._reach = (np.empty(0, np.int64) for _ in range(3))
        # Kernels may be reading what was replaced.
        self._replaced: list[NDArray[np.int64]] = []
        self._owners: dict[_Range, set[int]] = {}
        self._watched: dict[int, tuple[weakref.ref[Any], set[_Range]]] = {}
        # Owners that are gone: they go at any time, also amid a change of what is above.
        self._gone: deque[int] = deque()
        self._kept: deque[tuple[object, _Range]] = deque()
        self._lock = threading.Lock()

    def add(self, start: int, size_bytes: int, owner: object) -> None:
        """Let kernels use a range for as long as its owner lives."""
        with self._lock:
            self._forget_gone()
            key = (start, start + size_bytes)
            if key not in self._owners:
                self._owners[key] = set()
                self._insert(key)
            if not self._watch(owner, key):
                self._owners[key].add(-1)
                self._kept.append((owner, key))
                if len(self._kept) > _KEPT:
                    _, oldest = self._kept.popleft()
                    if all(each != oldest for _, each in self._kept):
                        self._release(oldest, -1)

    def holds(self, start: int, size_bytes: int) -> bool:
        """Whether all bytes of an access lie in one range."""
        with self._lock:
            self._forget_gone()
            before = int(np.searchsorted(self._starts[: self._n], start, "right"))
            return before > 0 and start + size_bytes <= int(self._reach[before - 1])

    def near(self, start: int) -> list[_Range]:
        """The ranges about an address, for messages."""
        at = int(np.searchsorted(self._starts[: self._n], start, "right"))
        places = range(max(at - 2, 0), min(at + 2, self._n))
        return [(int(self._starts[place]), int(self._ends[place])) for place in places]

    def _watch(self, owner: object, key: _Range) -> bool:
        name = id(owner)
        if name not in self._watched:
            try:
                watch = weakref.ref(owner, lambda _: self._lose(name))
            except TypeError:
                return False
            self._watched[name] = watch, set()
        self._watched[name][1].add(key)
        self._owners[key].add(name)
        return True

    def _lose(self, name: int) -> None:
        self._gone.append(name)
        # If a change is under way, which may be this thread's own, this is done with the next change.
        if self._lock.acquire(blocking=False):
            try:
                self._forget_gone()
            finally:
                self._lock.release()

    def _forget_gone(self) -> None:
        while self._gone:
            name = self._gone.popleft()
            watch, keys = self._watched[name]
            if watch() is None:
                del self._watched[name]
                for key in keys:
                    self._release(key, name)

    def _release(self, key: _Range, owner: int) -> None:
        owners = self._owners[key]
        owners.discard(owner)
        if not owners:
            del self._owners[key]
            self._remove(key)

    def _insert(self, key: _Range) -> None:
        if self._n == len(self._starts):
            self._grow()
        at, n = int(np.searchsorted(self._starts[: self._n], key[0], "right")), self._n
        for array, value in ((self._starts, key[0]), (self._ends, key[1])):
            array[at + 1 : n + 1] = array[at:n]
            array[at] = value
        self._reach[at : n + 1] = self._ends[at : n + 1]
        self._settle(at, n + 1)

    def _remove(self, key: _Range) -> None:
        at, n = int(np.searchsorted(self._starts[: self._n], key[0])), self._n
        while int(self._ends[at]) != key[1]:
            at += 1
        for array in (self._starts, self._ends):
            array[at : n - 1] = array[at + 1 : n]
        self._settle(at, n - 1)

    def _settle(self, at: int, n: int) -> None:
        """Compute the reach from a place on, and publish."""
        first = max(at - 1, 0)
        reach = self._ends[first:n].copy()
        if first:
            reach[0] = self._reach[first]
        self._reach[first:n] = np.maximum.accumulate(reach)
        self._n = self.table[0] = n

    def _grow(self) -> None:
        self._replaced += [self._starts, self._reach]
        more = max(1024, len(self._starts))
        self._starts, self._ends, self._reach = (
            np.concatenate([array, np.zeros(more, np.int64)])
            for array in (self._starts, self._ends, self._reach)
        )
        self.table[1:] = [each.__array_interface__["data"][0] for each in (self._starts, self._reach)]


ranges = Ranges()
"""The ranges of this process."""


def let_use(array: np.ndarray[Any, Any], start: int) -> None:
    """Let kernels use an array's bytes, which begin at `start`, from then on."""
    root: Any = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    ranges.add(start, array.nbytes, root)
    if root.base is not None:
        # The memory is another object's, which may outlive the arrays that show it.
        owner = root.base.obj if isinstance(root.base, memoryview) else root.base
        ranges.add(start, array.nbytes, owner)


def check(start: int, size_bytes: int) -> None:
    """End the process where an access lies in no range."""
    if size_bytes and not (size_bytes > 0 and ranges.holds(start, size_bytes)):
        _end(start, size_bytes)


def _end(start: int, size_bytes: int) -> NoReturn:
    near = ", ".join(
        f"[{begin:#x}, {end:#x}): {start - begin:+,d} from its start, {start + size_bytes - end:+,d} beyond its end"
        for begin, end in ranges.near(start)
    )
    print(
        f"checked kernels: {size_bytes} bytes at {start:#x} lie in no array that kernels were handed; near: "
        f"{near or 'none'}",
        file=sys.__stderr__,
        flush=True,
    )
    traceback.print_stack(file=sys.__stderr__)
    os.abort()
