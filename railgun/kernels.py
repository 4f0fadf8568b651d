"""Compiles every kernel into the cache: `python -m railgun.kernels`.

A kernel is compiled when it is first called; every later process finds it in the cache. This calls all kernels once, so
that neither the first event of a new installation nor the tests wait for compiling. It scores a few events with every
aggregator over every kind of window, on disk, and recovers from a checkpoint. Kernels that are called rarely are
compiled by name, because an event would wait for them too. The called kernels then become an image
(`reservoir.native.image`), with which every later process begins.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from railgun.child_python import child_python
from railgun.engine.engine import Engine
from railgun.exclusive import exclusive
from railgun.state.paged import access, eviction, ordered_map
from railgun.state.rows import evict, upgrade
from railgun.state.rows import eviction as row_eviction
from railgun.state.rows import load as row_load
from railgun.task import admission, retirement
from railgun.task.settings import TaskSettings
from railgun.wire import long_text, reply_kernel, rfc3339
from reservoir import gather
from reservoir.cursors import edges
from reservoir.native import image as kernel_image
from reservoir.native.cache import cache_folder
from reservoir.native.jit import entry_points, is_image, use_numba
from reservoir.native.kernel_mode import IS_CHECKED

_ROOMS = ("railgun", "reservoir")

# (module, name, types of the arguments). The types are None for an entry point, which has a type of its own.
Kernel = tuple[str, str, list[str] | None]


def make_image() -> bool:
    """Make the image of all kernels that this process has called.

    Returns False, without an image, if this very process has compiled some of them: it then also has the many kernels
    that only other kernels call. The next process can make it. If the file cannot be written, there is no image either.
    """
    if is_image():
        return True
    if IS_CHECKED:
        return False
    if any(function.stats.cache_misses for function in _functions()):
        return False
    from reservoir.native.image_build import build

    with suppress(OSError):
        build(list(_called()), _entries())
    return True


def loaded_kernels() -> list[Kernel]:
    """Return the kernels that this process can call without compiling or loading anything."""
    found: list[Kernel] = [
        (each.__wrapped__.__module__, each.__wrapped__.__name__, None) for each in _entries()
    ]
    found += [
        (function.__module__, function.__name__, [str(each) for each in signature])
        for function, signature in _called()
    ]
    return sorted(found, key=str)


def cached_kernels() -> int:
    """Return how many kernels of this source tree are in the cache, including those that only kernels call."""
    places = {Path(function.stats.cache_path) for function in _functions()}
    return sum(1 for place in places for _ in place.glob("*.nbc"))


def _called() -> Iterable[tuple[Any, Any]]:
    """Yield each function with each signature that it was called with."""
    from numba.core import types

    for function in _functions():
        for signature in function.overloads:
            # Only kernels call functions with other arguments than words. These functions come with their callers.
            if all(hasattr(types, str(each)) for each in signature):
                yield function, signature


def _entries() -> list[Any]:
    return list({each.__wrapped__: each for each in entry_points()}.values())


def _functions() -> Iterable[Any]:
    from numba.core.dispatcher import Dispatcher

    for module_name, module in list(sys.modules.items()):
        if module_name.split(".")[0] in _ROOMS:
            for value in list(vars(module).values()):
                if isinstance(value, Dispatcher) and value.__module__ == module_name:
                    yield value


_STREAM = """
[streams.warmup]
time = "ts"
id = "id"
partitioners = ["k", "*"]
partitions = 2
dedup_events = 100
[streams.warmup.fields]
id = "string"
ts = "timestamp"
k = "string"
d = "double"
n = "long"
m = "decimal(9,2)"
b = "boolean"
[streams.crowd]
id = "id"
partitioners = ["id"]
[streams.crowd.fields]
id = "string"
[[metrics]]
sql = "SELECT count(*) AS n FROM crowd GROUP BY id OVER SLIDING 1 SECOND"
"""
_WINDOWS = ("SLIDING 2 SECONDS", "SLIDING 1 SECOND DELAYED BY 1 SECOND", "TUMBLING 1 SECOND", "INFINITE")
# An aggregator of every kind of state. Kernels are compiled for kinds of columns, not for each metric. More
# metrics would
# compile nothing more, and every start of a server would plan them.
# compile nothing more, and every start of a server would plan them.
_ITEMS = (
    *("count(*)", "sum(d)", "avg(n)", "stddev(m)", "min(d)", "max(k)", "first(ts)", "last(b)", "prev(d)"),
    "count_distinct(k)",
)
_EVENTS, _STEP = 600, 50
# A chunk has few events, so that some chunks are sealed, written and read back. The sweep of idle rows is always due.
_SETTINGS = TaskSettings(chunk_events=64, sweep_interval_s=0.0)
_CROWD = 3_000  # more ids and entities than tables begin with
_FEW = 100  # compiled kernels in a cache that is not complete

# What sweeps, evictions, dropped metrics and edges amid sealed chunks call, none of which can be had at will, and what
# replies of nodes, times as text and keys that are longs need. By their modules: who has what of them changes when
# Numba takes over. Their arguments are int64, but for those that are named.
_RARE: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (access, ("absent_pages", "page_address")),
    (eviction, ("age_to_evict", "make_room")),
    (ordered_map, ("free_deferred_page",)),
    (evict, ("evict_rows", "evict_segment", "gather_tombstones")),
    (row_load, ("undo_load",)),
    (upgrade, ("leave_rows",)),
    (row_eviction, ("colder_class", "is_turn", "typical_age")),
    (admission, ("take_over",)),
    (retirement, ("reset_cells",)),
    (reply_kernel, ("encode_reply", "record_bytes", "select_rows")),
    (rfc3339, ("parse_column", "parse_rfc3339")),
    (long_text, ("_write_longs",)),
    (edges, ("frame_passed",)),
    (gather, ("_pair_up",)),
)
_OM_SCAN = ("int64", "int64", "uint64", "uint64", "int64", "int64")


def definitions() -> str:
    """Return a stream with a field of every type, metrics of every kind of state, and one metric of many entities."""
    metrics = []
    for number, window in enumerate(_WINDOWS):
        named = ", ".join(f"{item} AS m{number}_{index}" for index, item in enumerate(_ITEMS))
        filtered = "WHERE LOWER(k) LIKE 'k%' AND (d > 1 OR n IN (1, 2, 3)) " if number % 2 else ""
        metrics.append(
            f'[[metrics]]\nsql = """SELECT {named} FROM warmup {filtered}GROUP BY k OVER {window}"""'
        )
    return _STREAM + "\n".join(metrics)


def _events() -> pa.Table:
    rows = range(_EVENTS)
    odd = [1e300, 5e-324, -2.5e-9, 3.25]
    return pa.table(
        {
            "id": [f"e{row % (_EVENTS - 5)}" for row in rows],
            "ts": [1_700_000_000_000 + 20 * row - (row % 7) * 30 for row in rows],
            "k": [None if row % 11 == 0 else f"K{row % 3}é" for row in rows],
            "d": [odd[row % 4] if row % 50 == 0 else row / 4 for row in rows],
            "n": [None if row % 9 == 0 else row - 300 for row in rows],
            "m": [f"{row}.25" for row in rows],
            "b": [row % 2 == 0 for row in rows],
        }
    )


def compile_all() -> None:
    """Call every kernel once, in a temporary folder."""
    table = _events()
    with tempfile.TemporaryDirectory(prefix="railgun-kernels-") as folder:
        with Engine(Path(folder) / "data", durability="os", settings=_SETTINGS) as engine:
            engine.apply(definitions())
            engine.score_table("warmup", table.slice(0, _EVENTS // 2))
            engine.score_table("crowd", pa.table({"id": [f"e{number}" for number in range(_CROWD)]}))
            engine.add_metrics("warmup", "SELECT max(k) AS later FROM warmup GROUP BY k OVER SLIDING 1 HOUR")
            # The steps are small, so that kernels which notice the work of other threads are called too.
            for first in range(_EVENTS // 2, _EVENTS, _STEP):
                engine.score_table("warmup", table.slice(first, _STEP))
        with Engine(Path(folder) / "data", durability="os", settings=_SETTINGS) as engine:
            engine.values("warmup", [{"k": "K1é"}, {"k": None}, {"k": "of none"}])
            engine.score("warmup", {**table.slice(_EVENTS - 1).to_pylist()[0], "id": "once more"})
            engine.drop_metric("warmup", "later")
    if not is_image():
        _compile_rare()


def _compile_rare() -> None:
    from numba.core import types

    for module, names in _RARE:
        for name in names:
            kernel = getattr(module, name)
            kernel.compile((types.int64,) * kernel.py_func.__code__.co_argcount)
    entries: Any = ordered_map.om_scan
    entries.compile(tuple(getattr(types, each) for each in _OM_SCAN))


def compile_and_link() -> bool:
    """Call every kernel once, by Numba, and make an image of them. Returns False if some had to be compiled.

    The next process can make the image then.
    """
    use_numba()
    before = cached_kernels()
    compile_all()
    return cached_kernels() == before and make_image()


@contextmanager
def compiling_alone() -> Iterator[None]:
    """Keep other processes from compiling while the block runs. Those that wait find the compiled kernels in the cache.

    A server and a node that start together would otherwise share the processors to compile the same kernels.
    """
    with ExitStack() as held:
        # If nothing can be kept in the cache, there is no reason to wait.
        with suppress(OSError):
            held.enter_context(exclusive(cache_folder().with_name("compiling.lock")))
        yield


def main() -> None:
    """Compile unless there is an image. It says so on stderr, because it takes a minute or a few, once."""
    if is_image():
        return
    if IS_CHECKED:
        compile_all()
        return
    started = time.perf_counter()
    found = cached_kernels()
    if found < _FEW:
        sys.stderr.write(f"Compiling kernels into {cache_folder()}: a minute or a few, once.\n")
        sys.stderr.flush()
    with compiling_alone():
        # Another process may have made it meanwhile. An image that is not whole is made again.
        if kernel_image.load() is None and not compile_and_link():
            again = "from railgun.kernels import compile_and_link; compile_and_link()"
            # The process itself says why it fails.
            if code := subprocess.run(child_python("-c", again), check=False).returncode:
                sys.exit(code if code > 0 else 1)
    if found < _FEW:
        sys.stderr.write(f"Compiled in {time.perf_counter() - started:.0f} s.\n")


if __name__ == "__main__":
    main()
