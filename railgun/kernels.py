"""Compiles every kernel into the cache: `python -m railgun.kernels`.

A kernel is compiled when it is first called, and then found in the cache by every later process.  This calls
them all once, so that neither the first event of a new installation nor the tests have to wait for it: it
scores a few events with every aggregator over every kind of window, on disk, and recovers from a checkpoint.
Those that are only called now and then are compiled by name: an event would wait for them too.
Which they were is noted; a server then loads them by name.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from numba.core import types

from railgun.engine.engine import Engine
from railgun.exclusive import exclusive
from railgun.kernel_list import cached_kernels, load_all, note_all
from railgun.state.paged.access import absent_pages
from railgun.state.paged.eviction import age_to_evict
from railgun.state.paged.eviction import make_room as make_page_room
from railgun.state.paged.ordered_map import om_scan
from railgun.state.paged.ordered_map_graveyard import bury_step
from railgun.state.rows.evict import evict_rows, evict_segment, gather_tombstones
from railgun.state.rows.load import displace
from railgun.state.rows.renew import leave_rows
from railgun.state.rows.room import colder_class, is_turn, typical_age
from railgun.task.admission import take_over
from railgun.task.row_reset import reset_cells
from railgun.task.settings import TaskSettings
from reservoir.compiled import cache_folder
from reservoir.edges import frame_passed

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
# An aggregator of every kind of state. Kernels are compiled for kinds of columns, not for each metric: more of these
# compile nothing more, and every start of a server would plan them.
_ITEMS = (
    *("count(*)", "sum(d)", "avg(n)", "stddev(m)", "min(d)", "max(k)", "first(ts)", "last(b)", "prev(d)"),
    "count_distinct(k)",
)
_EVENTS, _STEP = 600, 50
# So few events in a chunk that some are sealed, written and read back; the sweep of idle rows is always due.
_SETTINGS = TaskSettings(chunk_events=64, sweep_interval_s=0.0)
_CROWD = 3_000  # more ids and entities than tables begin with
_FEW = 100  # compiled kernels in a cache that is not complete

# What sweeps, evictions, dropped metrics and edges amid sealed chunks call, none of which can be had at will. Their
# arguments are int64, but for those that are named.
_RARE: tuple[Any, ...] = (
    *(absent_pages, age_to_evict, make_page_room, bury_step),
    *(evict_rows, evict_segment, gather_tombstones, displace, leave_rows, colder_class, is_turn, typical_age),
    *(take_over, reset_cells, frame_passed),
)
_RARE_OTHERS: tuple[tuple[Any, tuple[Any, ...]], ...] = (
    (om_scan, (types.int64, types.int64, types.uint64, types.uint64, types.int64, types.int64)),
)


def definitions() -> str:
    """A stream with a field of every type and metrics of every kind of state, and one of many entities."""
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
            # Bit by bit: what other threads have done meanwhile is taken notice of, in kernels of its own.
            for first in range(_EVENTS // 2, _EVENTS, _STEP):
                engine.score_table("warmup", table.slice(first, _STEP))
        with Engine(Path(folder) / "data", durability="os", settings=_SETTINGS) as engine:
            engine.score("warmup", {**table.slice(_EVENTS - 1).to_pylist()[0], "id": "once more"})
            engine.drop_metric("warmup", "later")
    for kernel in _RARE:
        kernel.compile((types.int64,) * kernel.py_func.__code__.co_argcount)
    for kernel, arguments in _RARE_OTHERS:
        kernel.compile(arguments)


def compile_and_note() -> bool:
    """Call every kernel once, and note which they were. False: some had to be compiled; the next process can note."""
    before = cached_kernels()
    compile_all()
    return cached_kernels() == before and note_all()


@contextmanager
def compiling_alone() -> Iterator[None]:
    """While the block runs no other process compiles: whoever waits here finds in the cache what that one compiled.

    A server and a node that are started together would share the processors to compile the same twice.
    """
    with ExitStack() as held:
        # Where nothing can be kept there is nothing to wait for either.
        with suppress(OSError):
            held.enter_context(exclusive(cache_folder().with_name("compiling.lock")))
        yield


def main() -> None:
    """Load all; or compile, saying so: it takes a minute or a few, once."""
    if load_all():
        return
    begun = time.perf_counter()
    found = cached_kernels()
    if found < _FEW:
        sys.stderr.write(f"Compiling kernels into {cache_folder()}: a minute or a few, once.\n")
        sys.stderr.flush()
    with compiling_alone():
        if not load_all() and not compile_and_note():
            again = "from railgun.kernels import compile_and_note; compile_and_note()"
            subprocess.run([sys.executable, "-c", again], check=True)
    if found < _FEW:
        sys.stderr.write(f"Compiled in {time.perf_counter() - begun:.0f} s.\n")


if __name__ == "__main__":
    main()
