"""Computes a digest of a task's logical content. It does not depend on batches, caches, restarts or the copy of the
task. Copies of a task compare their digests.

The state part covers the content of the cells in every row, for each metric that is full: its fill has ended. Pages are
followed, and empty windows are left out. The reservoir part covers every event later than R, the retention bound.
Layouts, page numbers and unfinished fills are left out.
"""

import hashlib
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from railgun.aggregators import codes
from railgun.aggregators.sum_double import SQUARES_WORDS, SUM_WORDS, WIDE_SQUARES_WORDS, WIDE_SUM_WORDS
from railgun.interpreter import layout as at
from railgun.state.paged.access import page_address
from railgun.state.rows.context import ROW_HEAD_BYTES
from railgun.task.plan_runtime import subtract_clamped
from railgun.task.retirement import CellKind, cell_kinds
from railgun.task.view import TaskView
from reservoir.native.jit import address, array_at

_TREES = (codes.DEQUE_MIN, codes.DEQUE_MAX, codes.QUEUE)
_SETS = (codes.MULTISET, codes.VALUE_SET)
_WIDE_WORDS = {codes.SUM_DOUBLE: WIDE_SUM_WORDS, codes.SQUARES_DOUBLE: WIDE_SQUARES_WORDS}
_NARROW_WORDS = {codes.SUM_DOUBLE: SUM_WORDS, codes.SQUARES_DOUBLE: SQUARES_WORDS}
_DIGEST_BYTES = 16
_MODULUS = 1 << (8 * _DIGEST_BYTES)


class _Cell(NamedTuple):
    kind: CellKind
    word: int
    words: int


class _Part(NamedTuple):
    """The parts of one metric in a digest: its name, its cells, and for a tumbling window (word of the bucket, present
    bucket).
    """

    name: bytes
    cells: list[_Cell]
    bucket: tuple[int, int] | None


def digest(task: TaskView) -> str:
    """Return the digest, 128 bits in hex. Must be called between batches. Reads all of the state and
    the reservoir.
    """
    total = _hash(_settings(task))
    for group, parts in _parts(task).items():
        fields = ",".join(task.runtime.layouts[group].fields).encode()
        for ids, rows in task.table.reader.rows(group):
            for entity, cells in zip(ids, rows):
                found = b"".join(_part(task, part, cells) for part in parts)
                if found:
                    total += _hash(fields, entity.tobytes(), found)
    return f"{(total + _events(task)) % _MODULUS:032x}"


def _settings(task: TaskView) -> bytes:
    admission = task.admission
    metrics = [(m.definition.name, m.added, m.after_ms, m.warm) for m in task.metrics.by_name.values()]
    message = (
        task.position,
        admission.clock_ms,
        admission.floor_ms,
        task.retained_ms,
        admission.least_ms,
        metrics,
    )
    # A task without a gap has the digest that earlier releases compute.
    return repr(message if task.gap is None else (*message, task.gap)).encode()


def _events(task: TaskView) -> int:
    total = 0
    for rows in task.reservoir.scan():
        for i in np.flatnonzero(rows.time > task.retained_ms).tolist():
            payload = rows.payload[rows.offsets[i] : rows.offsets[i + 1]].tobytes()
            total += _hash(rows.time[i].tobytes(), rows.seq[i].tobytes(), rows.ids[i].tobytes(), payload)
    return total


def _parts(task: TaskView) -> dict[int, list[_Part]]:
    """Return the full metrics of each group with their cells, in the order of names."""
    program, kinds = task.runtime.program, cell_kinds(task.runtime.program)
    sizes = {
        (layout.group, ROW_HEAD_BYTES + 8 * offset): words
        for layout in task.runtime.layouts.values()
        for offset, words in layout.cells.values()
    }
    names = {index: name for name, index in program.outputs.items()}
    found: dict[int, list[_Part]] = {}
    for node in program.nodes.tolist():
        group, bucket = node[at.NODE_GROUP], None
        if node[at.NODE_KIND] == at.TUMBLING:
            now = subtract_clamped(task.admission.clock_ms, node[at.NODE_DELAY]) // node[at.NODE_SIZE]
            bucket = (node[at.NODE_BUCKET] - ROW_HEAD_BYTES) // 8, now
        for op in program.results[node[at.NODE_RESULTS] : node[at.NODE_RESULTS_END]].tolist():
            name = names[op[at.RESULT_OUT]]
            if not task.metrics.fills[task.metrics.by_name[name].generation].full:
                continue
            offsets = sorted({op[at.RESULT_CELL], op[at.RESULT_SQUARES], op[at.RESULT_COUNT]} - {0})
            cells = [_Cell(kinds[group, o], (o - ROW_HEAD_BYTES) // 8, sizes[group, o]) for o in offsets]
            cells.sort(key=lambda cell: cell.kind)
            found.setdefault(group, []).append(_Part(name.encode(), cells, bucket))
    return {group: sorted(parts, key=lambda part: part.name) for group, parts in found.items()}


def _part(task: TaskView, part: _Part, row: npt.NDArray[np.uint64]) -> bytes:
    """Return what a row holds for a metric; nothing if its window is empty."""
    if part.bucket is not None and int(row[part.bucket[0]].view(np.int64)) != part.bucket[1]:
        return b""
    if not any(row[cell.word : cell.word + cell.words].any() for cell in part.cells):
        return b""
    return part.name + b"\0" + b"".join(_cell(task, cell, row) for cell in part.cells)


def _cell(task: TaskView, cell: _Cell, row: npt.NDArray[np.uint64]) -> bytes:
    """Return a cell's content, with the content of pages in place of their numbers."""
    op = cell.kind.op
    words = np.ascontiguousarray(row[cell.word : cell.word + cell.words])
    if op in _TREES or op in _SETS:
        value_words = 2 if op in _TREES and cell.kind.type_code == codes.TYPE_STRING else 1
        entries = task.pool.walk(address(words), value_words)
        content: bytes = words[1].tobytes() + b"".join(part.tobytes() for part in entries)
        return content
    if op in _WIDE_WORDS:
        narrow: bytes = words[1 : _NARROW_WORDS[op]].tobytes()
        return narrow + _wide(task, int(words[0]), _WIDE_WORDS[op])
    whole: bytes = words.tobytes()
    return whole


def _wide(task: TaskView, page: int, words: int) -> bytes:
    if page == 0:
        return b""
    while (where := int(page_address(task.pool.context, page))) < 0:
        task.pool.handle(where)
    content: bytes = array_at(where, words, np.uint64).tobytes()
    return content


def _hash(*parts: bytes) -> int:
    hashed = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little") + part)
    return int.from_bytes(hashed.digest(), "big")
