"""Reply records: the results of a batch for one front-end, as columns. FORMAT.md describes the bytes.

Tasks write them, and front-ends read them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from railgun.wire import reply_kernel as kernel
from railgun.wire.columns import REF_LENGTH_BITS, REF_LENGTH_MASK
from railgun.wire.decode import Decoded
from railgun.wire.encode import NO_REPLY
from reservoir.distinct import distinct
from reservoir.native.jit import address

_FIRST_CAPACITY_BYTES = 1 << 16
_FIRST_ROWS = 256
_EMPTY = np.zeros(8, np.uint8)
# The first byte of reply records of earlier releases.
_WITHOUT_SCHEMA = 0x03


class Shape(IntEnum):
    """How a metric's result is stored: as one word, as two (128-bit integer), or as a reference to a string."""

    WORD = kernel.WORD
    WIDE = kernel.WIDE
    STRING = kernel.STRING


class ReplyFlag(IntFlag):
    """A task's statements about one event."""

    REWRITTEN = 1
    DISCARDED = 2
    DUPLICATE = 4


class ReplyRecordError(ValueError):
    """The bytes are not a reply record, or not a complete one. The message says why."""


@dataclass(frozen=True, slots=True)
class ReplyMetric:
    """A metric in a reply. Its type is given by the parts of a type of the metric language."""

    name: str
    kind: str
    precision: int
    scale: int
    shape: Shape
    warming: bool = False


@dataclass(frozen=True, slots=True)
class ReplySource:
    """The task that answers, and its metrics in the order of their results."""

    stream: str
    partitioner: str
    partition: int
    metrics: tuple[ReplyMetric, ...]


class Partial(NamedTuple):
    """A metric covers only events later than `bound_ms` in the replies to rows first_row to after_row - 1."""

    metric: int
    bound_ms: int
    first_row: int
    after_row: int


class BatchReplies(NamedTuple):
    """A task's replies to a batch of n records.

    decoded: the batch. Its `reply_to` names the front-end that waits; it is negative if none does.
    flags: uint8[n] (`ReplyFlag`).
    offsets: int64[n] in the task's log.
    results: uint64[metrics, stride, 2], nulls: uint8[metrics, stride], heap: uint8[...]. The interpreter has written
        them. They are C-contiguous, and strings are references into the heap.
    partials: by rows of the batch.
    generation: tells the runs of the unit that answers apart.
    place: the number of the catalogue's newest change that is in force at these records.
    """

    decoded: Decoded
    flags: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    results: NDArray[np.uint64]
    nulls: NDArray[np.uint8]
    heap: NDArray[np.uint8]
    partials: Sequence[Partial] = ()
    generation: int = 0
    place: int = 0


_INPUTS = (kernel.OFFSETS, kernel.FLAGS, kernel.RESULTS, kernel.RESULT_NULLS, kernel.RESULT_HEAP)


class _Pointer:
    """A word of a context that points at an array. Finding an address again would cost more than
    encoding most rows.
    """

    def __init__(self, context: NDArray[np.int64], place: int) -> None:
        self._context = context
        self._place = place
        self._array: NDArray[Any] | None = None

    def point_at(self, array: NDArray[Any]) -> None:
        """Note the address of an array and keep it alive."""
        if array is not self._array:
            self._array = array
            self._context[self._place] = address(array)


class ReplyEncoder:
    """Writes reply records of one task, as long as its set of metrics stays the same. Not thread-safe."""

    def __init__(self, source: ReplySource) -> None:
        self._description = np.frombuffer(describe(source), np.uint8)
        self._shapes = np.array([int(metric.shape) for metric in source.metrics] or [0], np.uint8)
        self._out = np.zeros(_FIRST_CAPACITY_BYTES, np.uint8)
        self._rows = np.empty(_FIRST_ROWS, np.int64)
        self._context = context = np.zeros(kernel.CONTEXT_WORDS, np.int64)
        self._context_address = address(context)
        self._pointers = [_Pointer(context, place) for place in _INPUTS]
        context[kernel.METRICS] = len(source.metrics)
        context[kernel.ROWS] = address(self._rows)
        context[kernel.SHAPES] = address(self._shapes)
        context[kernel.DESCRIPTION] = address(self._description)
        context[kernel.DESCRIPTION_BYTES] = len(self._description)
        context[kernel.OUT], context[kernel.CAPACITY] = address(self._out), len(self._out)

    def encode(self, replies: BatchReplies) -> list[tuple[int, bytes]]:
        """Return (destination, record) for every front-end that waits for rows of a batch."""
        self._bind(replies)
        decoded = replies.decoded
        records: list[tuple[int, bytes]] = []
        for destination in _destinations(decoded.reply_to, decoded.n):
            chosen = kernel.select_rows(self._context_address, decoded.n, destination)
            partials = _chosen_partials(replies.partials, self._rows[:chosen])
            records.append((destination, self._record(partials)))
        return records

    def encode_rows(self, replies: BatchReplies, rows: NDArray[np.int64]) -> bytes:
        """Return one record of some rows (int64[...], ascending), whichever front-ends wait for them."""
        self._bind(replies)
        self._rows[: len(rows)] = rows
        self._context[kernel.N] = len(rows)
        return self._record(_chosen_partials(replies.partials, rows))

    def _bind(self, replies: BatchReplies) -> None:
        decoded, flags, offsets, results, nulls, heap, _, generation, place = replies
        n, context = decoded.n, self._context
        context[kernel.DECODED] = decoded.context
        context[kernel.STRIDE] = nulls.shape[1]
        context[kernel.GENERATION], context[kernel.PLACE] = generation, place
        inputs: tuple[NDArray[Any], ...] = (offsets, flags, results, nulls, heap)
        for pointer, array in zip(self._pointers, inputs):
            pointer.point_at(array)
        if n > len(self._rows):
            self._rows = np.empty(2 * n, np.int64)
            context[kernel.ROWS] = address(self._rows)

    def _record(self, partials: NDArray[np.int64]) -> bytes:
        context = self._context
        context[kernel.PARTIAL_COUNT] = len(partials)
        if len(partials):
            context[kernel.PARTIALS] = address(partials)
        size = kernel.encode_reply(self._context_address)
        if size < 0:
            self._out = np.zeros(-2 * size, np.uint8)
            context[kernel.OUT], context[kernel.CAPACITY] = address(self._out), len(self._out)
            size = kernel.encode_reply(self._context_address)
        return self._out[:size].tobytes()


def describe(source: ReplySource) -> bytes:
    """Return the description in a record, which all of its rows share."""
    metrics = [[m.name, m.kind, m.precision, m.scale, int(m.shape), m.warming] for m in source.metrics]
    return msgspec.msgpack.encode([source.stream, source.partitioner, source.partition, metrics])


def _destinations(reply_to: NDArray[np.int64], n: int) -> list[int]:
    only = only_destination(reply_to, n)
    if only is not None:
        return [only]
    return [each for each in distinct(reply_to[:n]).tolist() if each > NO_REPLY]


def only_destination(reply_to: NDArray[np.int64], n: int) -> int | None:
    """Return the front-end that waits for all rows of a batch; None if there is no such front-end."""
    first = int(reply_to[0]) if n else NO_REPLY
    if first <= NO_REPLY or (n > 1 and (reply_to[1:n] != first).any()):
        return None
    return first


_NO_PARTIALS = np.zeros((0, kernel.PARTIAL_WORDS), np.int64)


def _chosen_partials(partials: Sequence[Partial], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the partials of some rows, which ascend. Their row numbers are places among the chosen rows."""
    if not partials:
        return _NO_PARTIALS
    chosen = np.array(partials, np.int64)
    chosen[:, 2:] = np.searchsorted(rows, chosen[:, 2:])
    return np.ascontiguousarray(chosen[chosen[:, 2] < chosen[:, 3]])


@dataclass(frozen=True, slots=True, eq=False)
class PlaneLayout:
    """The places of metrics' words among the planes of a record. A plane has one word for each row.

    count: how many planes there are.
    low: int64[metrics]; the plane of each metric's low word.
    wide: int64[...]; the metrics that have a high word, which is in the next plane.
    """

    count: int
    low: NDArray[np.int64]
    wide: NDArray[np.int64]

    @classmethod
    def of_shapes(cls, shapes: Sequence[Shape]) -> "PlaneLayout":
        """Return a layout with one plane for each metric, and two for wide ones."""
        is_wide = np.array([shape is Shape.WIDE for shape in shapes], np.int64)
        after = np.cumsum(1 + is_wide)
        return cls(int(after[-1]) if shapes else 0, after - 1 - is_wide, np.flatnonzero(is_wide))

    def of(self, metric: int) -> slice:
        """Return the planes of a metric."""
        first = int(self.low[metric])
        return slice(first, int(self.low[metric + 1]) if metric + 1 < len(self.low) else self.count)


@dataclass(frozen=True, slots=True)
class ReplyBatch:
    """One reply record as columns. The arrays are read-only views of its bytes.

    source: the task, and the metrics in the order of the planes.
    generation, place: as in `BatchReplies`.
    schema, incarnation, sequence, time, offset: int64[n]. schema: -1 in records of earlier releases.
    flags: uint8[n] (`ReplyFlag`).
    id_refs, id_heap: the ids of the events: int64[n], each offset << 24 | length, and the bytes of all.
    nulls: uint8[metrics, n].
    planes: uint64[p, n]; `layout` says which planes a metric has.
    heap: uint8[...]; the bytes to which words of strings (offset << 24 | length) refer.
    """

    source: ReplySource
    generation: int
    place: int
    schema: NDArray[np.int64]
    incarnation: NDArray[np.int64]
    sequence: NDArray[np.int64]
    time: NDArray[np.int64]
    offset: NDArray[np.int64]
    flags: NDArray[np.uint8]
    id_refs: NDArray[np.int64]
    id_heap: bytes
    nulls: NDArray[np.uint8]
    planes: NDArray[np.uint64]
    layout: PlaneLayout
    heap: NDArray[np.uint8]
    partials: list[Partial]

    def __len__(self) -> int:
        return len(self.time)

    def ids(self) -> list[str]:
        """Return the ids of the events."""
        heap = self.id_heap
        places = ((ref >> REF_LENGTH_BITS, ref & REF_LENGTH_MASK) for ref in self.id_refs.tolist())
        return [heap[start : start + length].decode() for start, length in places]

    def words(self, metric: int) -> NDArray[np.uint64]:
        """Return a metric's results: uint64[n, 1]; uint64[n, 2] for wide ones, with the low word first."""
        return self.planes[self.layout.of(metric)].T

    # Only of chosen rows: a record may answer thousands of requests, each of which reads its own rows.

    def low(self, rows: slice | NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return every metric's low word in some rows: uint64[metrics, ...]."""
        chosen = self.planes[:, rows]
        return chosen[self.layout.low] if len(self.layout.wide) else chosen

    def high(self, rows: slice | NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the high words of the metrics that have one, in order: uint64[wide, ...]."""
        return self.planes[:, rows][self.layout.low[self.layout.wide] + 1]


@lru_cache(maxsize=1024)
def _read_description(described: bytes) -> tuple[ReplySource, PlaneLayout]:
    try:
        stream, partitioner, partition, metrics = msgspec.msgpack.decode(described)
        listed = tuple(
            ReplyMetric(name, kind, precision, scale, Shape(shape), warming)
            for name, kind, precision, scale, shape, warming in metrics
        )
    except (msgspec.DecodeError, TypeError, ValueError) as error:
        raise ReplyRecordError(f"a reply record whose description cannot be read: {error}") from error
    layout = PlaneLayout.of_shapes([metric.shape for metric in listed])
    return ReplySource(stream, partitioner, partition, listed), layout


class _Reader:
    """Reads the sections of a record. Each is padded to whole words."""

    def __init__(self, record: bytes) -> None:
        self.record = record
        self.at = 8 * kernel.HEAD_WORDS

    def take(self, dtype: Any, count: int) -> NDArray[Any]:
        array: NDArray[Any] = (
            np.frombuffer(self.record, dtype, count, self.at) if count else _EMPTY[:0].view(dtype)
        )
        self.at += (array.nbytes + 7) & ~7
        return array

    def take_bytes(self, size: int) -> bytes:
        taken = self.record[self.at : self.at + size]
        self.at += (size + 7) & ~7
        return taken


def decode_reply(record: bytes) -> ReplyBatch:
    """Decode a reply record. Raises ReplyRecordError."""
    if len(record) < 8 * kernel.HEAD_WORDS or record[0] not in (kernel.REPLY, _WITHOUT_SCHEMA):
        raise ReplyRecordError(
            f"no reply record: {len(record)} bytes that begin with {record[:1].hex() or 'none'}"
        )
    head = np.frombuffer(record, np.int64, kernel.HEAD_WORDS).tolist()
    n, metrics, planes, described, ids, heap, partials, generation, place = head[1:]
    if min(head[1:8]) < 0 or max(head[1:8]) > len(record):
        raise ReplyRecordError("a reply record whose head has impossible counts")
    schema_bytes = 8 * n if record[0] == _WITHOUT_SCHEMA else 0
    if len(record) != kernel.record_bytes(n, metrics, planes, described, ids, heap, partials) - schema_bytes:
        raise ReplyRecordError(f"a reply record of {len(record)} bytes whose head promises others")
    reader = _Reader(record)
    source, layout = _read_description(reader.take_bytes(described))
    if len(source.metrics) != metrics or layout.count != planes:
        raise ReplyRecordError("a reply record whose head and description differ")
    parts = reader.take(np.int64, kernel.PARTIAL_WORDS * partials).reshape(-1, kernel.PARTIAL_WORDS)
    schema = np.full(n, -1) if schema_bytes else reader.take(np.int64, n)
    incarnation, sequence, time, offset = (reader.take(np.int64, n) for _ in range(4))
    flags = reader.take(np.uint8, n)
    id_refs, id_heap = reader.take(np.int64, n), reader.take_bytes(ids)
    null_bytes = ((n + 7) // 8 + 7) & ~7
    bits = reader.take(np.uint8, metrics * null_bytes).reshape(metrics, null_bytes)
    return ReplyBatch(
        source=source,
        generation=generation,
        place=place,
        schema=schema,
        incarnation=incarnation,
        sequence=sequence,
        time=time,
        offset=offset,
        flags=flags,
        id_refs=id_refs,
        id_heap=id_heap,
        nulls=np.unpackbits(bits, axis=1, count=n, bitorder="little"),
        planes=reader.take(np.uint64, planes * n).reshape(planes, n),
        layout=layout,
        heap=reader.take(np.uint8, heap),
        partials=[Partial(*part) for part in parts.tolist()],
    )
