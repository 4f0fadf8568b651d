"""The kernels that Python calls, with the types of their arguments. They become one image (`reservoir.native.image`).

A process that calls a kernel which is not in the image imports Numba amid its events, so tests hold the list complete.
"""

from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any, NamedTuple

from railgun.ingest import taken_records
from railgun.interpreter import hashing, rare, reading, resolve, run
from railgun.language.kernels import evaluate
from railgun.messaging import block
from railgun.plan import outputs
from railgun.state import rollback
from railgun.state.paged import access, blocks, eviction, layout, ordered_map, outbox, strings
from railgun.state.rows import evict, images, load, scan, slots, upgrade
from railgun.state.rows import eviction as row_eviction
from railgun.task import admission, retirement
from railgun.wire import (
    arrow_values,
    decode_kernel,
    encode_kernel,
    long_text,
    partition,
    reply_kernel,
    rfc3339,
)
from reservoir import gather, siphash
from reservoir.cursors import advance, edges, fill_rows
from reservoir.native.jit import entry_address, entry_points
from reservoir.open_region import append, ring
from reservoir.segments import chunk


class Kernel(NamedTuple):
    """A kernel that Python calls, or an entry point, which other kernels call by its address.

    types: of the arguments; None for an entry point, which has a type of its own.
    """

    module: ModuleType
    name: str
    types: tuple[str, ...] | None

    @property
    def function(self) -> Callable[..., Any]:
        """What the module has by this name: Numba's dispatcher, where Numba makes the kernels."""
        found: Callable[..., Any] = getattr(self.module, self.name)
        return found

    def load(self) -> None:
        """Load the kernel from the cache, or compile it. In a process where Numba makes the kernels."""
        if self.types is None:
            entry_address(self.function)
        else:
            compiled: Any = self.function
            compiled.compile(self.signature)

    @property
    def signature(self) -> Any:
        """The signature by which Numba's cache has the kernel."""
        from numba.core import types

        if self.types is None:
            return types.int64(types.int64)
        return tuple(getattr(types, each) for each in self.types)


# By modules, since who has what of them changes when Numba takes over. Those that take longest to compile come first,
# so that processes that compile end at the same time.
_CALLED: tuple[tuple[ModuleType, tuple[str, ...]], ...] = (
    (rare, ("add_rare",)),
    (evaluate, ("evaluate",)),
    (rare, ("result_rare", "reset_rare", "remove_rare", "text_rare")),
    (decode_kernel, ("decode_records",)),
    (run, ("run",)),
    (append, ("append_batch", "set_due_time", "seal_slots", "release_slots")),
    (resolve, ("resolve", "pass_entries")),
    (advance, ("advance_edges", "edges_sealed")),
    (load, ("place_missing", "fill_rows", "undo_load")),
    (eviction, ("make_room", "age_to_evict", "scan_old")),
    (hashing, ("hash_columns",)),
    (admission, ("admit", "take_over", "remember_many")),
    (arrow_values, ("_check_strings",)),
    (reply_kernel, ("encode_reply", "record_bytes", "select_rows")),
    (blocks, ("blocks_there", "add_empty_slab")),
    (ordered_map, ("free_deferred_page", "om_scan")),
    (
        scan,
        ("gather_rows", "copy_rows", "mark_outdated", "locate_rows", "head_rows", "keep_empty", "find_rows"),
    ),
    (scan, ("name_rows",)),
    (fill_rows, ("fill_rows",)),
    (encode_kernel, ("encode_records",)),
    (partition, ("_partition", "_partitions")),
    (rfc3339, ("parse_rfc3339", "parse_column")),
    (evict, ("evict_rows", "evict_segment", "gather_pending", "gather_tombstones")),
    (access, ("load_page", "page_address", "absent_pages")),
    (chunk, ("_references", "_split_nulls")),
    (ring, ("_move_refs", "_move_arena")),
    (gather, ("_words64", "_words_nulls", "_string_bytes", "_strings", "_pair_codes", "_payload_bytes")),
    (gather, ("_payloads", "_pair_up")),
    (row_eviction, ("typical_age", "colder_class", "is_turn")),
    (retirement, ("reset_cells",)),
    (edges, ("open_passed", "frame_passed")),
    (rollback, ("_overwritten",)),
    (block, ("_gather",)),
    (outputs, ("_gather",)),
    (taken_records, ("_gather",)),
    (reading, ("read",)),
    (upgrade, ("leave_rows",)),
    (slots, ("rehash",)),
    (outbox, ("index_outbox",)),
    (strings, ("load_absent_string",)),
    (images, ("image_bytes_max",)),
    (long_text, ("_write_longs",)),
    (siphash, ("siphash128",)),
    (layout, ("class_for",)),
)
# All other arguments are int64.
_WITH_UNSIGNED = {
    (ordered_map, "om_scan"): ("int64", "int64", "uint64", "uint64", "int64", "int64"),
    (siphash, "siphash128"): ("int64", "int64", "uint64", "uint64"),
}


def kernels() -> list[Kernel]:
    """Return all kernels, in the order in which processes compile them. In a process where Numba makes the kernels."""
    return [Kernel(module, name, _types(module, name)) for module, names in _CALLED for name in names]


def _types(module: ModuleType, name: str) -> tuple[str, ...] | None:
    if module is rare:
        return None
    compiled: Any = getattr(module, name)
    words: tuple[str, ...] = ("int64",) * compiled.py_func.__code__.co_argcount
    return _WITH_UNSIGNED.get((module, name), words)


def link() -> None:
    """Make the image of all kernels, which this process has loaded. If it cannot be written, there is none."""
    from reservoir.native.image_build import build

    called = [(each.function, each.signature) for each in kernels() if each.types is not None]
    with suppress(OSError):
        build(called, list({each.__wrapped__: each for each in entry_points()}.values()))
