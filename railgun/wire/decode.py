"""The Python side of the compiled decoder, which turns raw event records into columns.

One `Decoder` serves one set of schemas and one list of wanted fields. A new one is made when either changes. The next
call overwrites its columns, so a caller copies what must outlive a batch.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from railgun.wire import decode_kernel as kernel
from railgun.wire.msgpack import Status
from railgun.wire.records import Records
from railgun.wire.schema import STRING_LIMIT_BYTES, Field, Schema
from reservoir.native.jit import address

_FIRST_CAPACITY = 256
_ROW_COLUMNS = (
    kernel.SCHEMA,
    kernel.TIME,
    kernel.REPLY_TO,
    kernel.INCARNATION,
    kernel.SEQUENCE,
    kernel.SOURCE_PARTITION,
    kernel.SOURCE_OFFSET,
    kernel.SOURCE_COMMITTED,
    kernel.ID_OFFSET,
    kernel.ID_LENGTH,
    kernel.ID_HI,
    kernel.ID_LO,
)
_REASONS = {
    Status.UNKNOWN_SCHEMA: "its schema version is not known here",
    Status.UNKNOWN_RECORD: "its first byte names no kind of record known here",
    Status.TRUNCATED: "it ends inside a value",
    Status.WRONG_TYPE: "a value is not of its field's type",
    Status.OUT_OF_RANGE: "a number is outside the range of its field",
    Status.BAD_UTF8: "a string is not UTF-8",
    Status.TOO_LONG: f"a string is longer than {STRING_LIMIT_BYTES} bytes",
    Status.WRONG_COUNT: "it has too few header values or more values than its schema",
    Status.TRAILING_BYTES: "bytes follow its last value",
}


class Decoded:
    """Columns of one batch. Only the first `n` rows of a column are valid.

    n: rows decoded.  capacity: the rows for which the columns have room.
    exceptions: how many rows have a status that is not OK. Their fields are null, and their header columns not valid.
    buffer uint8[...] and offsets int64[n + 1]: the records' bytes; record i is
    buffer[offsets[i]:offsets[i + 1]].
    status uint8[n] (`Status`), fault_at int32[n] (byte of the record where decoding ended).
    schema, time, reply_to, incarnation, sequence, source_partition, source_offset, source_committed (-1:
    none), id_offset (into buffer), id_length (bytes): int64[n].  id_hi, id_lo: uint64[n],
    SipHash-1-3-128 of the id's bytes.
    words uint64[wanted, capacity], nulls uint8[wanted, capacity]: the wanted fields in the order asked for.
    A word holds int64 bits (long, timestamp, unscaled decimal), IEEE bits (double), 0 or 1 (boolean), or
    offset << 24 | length into buffer (string); 0 for a null.
    context: address of the kernel's context array (`railgun.wire.decode_kernel`), for kernels that read it too.
    buffer_at, offsets_at, id_hi_at, id_lo_at: the addresses of those arrays, which several kernels need.
    rows_at: the address of all columns of int64, which lie end to end.
    """

    __slots__ = (
        "_context",
        "buffer",
        "buffer_at",
        "capacity",
        "context",
        "exceptions",
        "fault_at",
        "id_hi",
        "id_hi_at",
        "id_length",
        "id_lo",
        "id_lo_at",
        "id_offset",
        "incarnation",
        "n",
        "nulls",
        "offsets",
        "offsets_at",
        "reply_to",
        "rows_at",
        "schema",
        "sequence",
        "source_committed",
        "source_offset",
        "source_partition",
        "status",
        "time",
        "words",
    )

    buffer: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    def __init__(self, capacity: int, wanted: int, context: NDArray[np.int64]) -> None:
        self.n = 0
        self.context = address(context)
        self._context = context  # kept alive as long as its address is
        self.exceptions = 0
        self.capacity = capacity
        self.buffer = np.zeros(0, np.uint8)
        self.offsets = np.zeros(1, np.int64)
        self.buffer_at, self.offsets_at = address(self.buffer), address(self.offsets)
        self.status = np.zeros(capacity, np.uint8)
        self.fault_at = np.zeros(capacity, np.int32)
        rows = np.zeros((len(_ROW_COLUMNS), capacity), np.int64)
        self.rows_at = address(rows)
        self.schema, self.time, self.reply_to, self.incarnation, self.sequence = rows[:5]
        self.source_partition, self.source_offset, self.source_committed = rows[5:8]
        self.id_offset, self.id_length = rows[8:10]
        self.id_hi, self.id_lo = rows[10:12].view(np.uint64)
        self.id_hi_at, self.id_lo_at = address(self.id_hi), address(self.id_lo)
        self.words = np.zeros((wanted, capacity), np.uint64)
        self.nulls = np.ones((wanted, capacity), np.uint8)

    def record(self, row: int) -> bytes:
        """Return the bytes of one record."""
        return self.buffer[self.offsets[row] : self.offsets[row + 1]].tobytes()

    def id(self, row: int) -> str:
        """Return the id of one event. The status of its record must be OK."""
        start = int(self.id_offset[row])
        return self.buffer[start : start + int(self.id_length[row])].tobytes().decode()

    def describe(self, row: int) -> str:
        """Return why a record could not be decoded, for the header of a dead letter."""
        status = Status(int(self.status[row]))
        return f"{status.name}: at byte {int(self.fault_at[row])} of the record: {_REASONS[status]}"


class Decoder:
    """Decodes batches of event records. One thread uses it.

    schemas: the versions of the schema that records may have.
    wanted: names of the fields to decode. A field that a record's schema lacks is null.
    hash_key: the two words of the key of id hashes; None leaves id_hi and id_lo unset.
    """

    def __init__(
        self, schemas: Iterable[Schema], wanted: Sequence[str], hash_key: tuple[int, int] | None = (0, 0)
    ) -> None:
        self.wanted = tuple(wanted)
        self._context = np.zeros(kernel.CONTEXT_WORDS, np.int64)
        self._context_address = address(self._context)
        self._tables = _schema_tables(list(schemas), self.wanted)
        for place, table in zip(_TABLE_PLACES, self._tables):
            self._context[place] = address(table)
        self._context[kernel.VERSIONS] = len(self._tables[0])
        self._context[kernel.WANTED] = len(self.wanted)
        if hash_key is not None:
            self._context[kernel.HASH_IDS] = 1
            self._context.view(np.uint64)[[kernel.KEY0, kernel.KEY1]] = hash_key
        self._decoded = Decoded(0, 0, self._context)
        self._reserve(_FIRST_CAPACITY)

    def decode(self, records: Records) -> Decoded:
        """Decode event records. Both arrays are C-contiguous."""
        buffer, offsets, n = records.buffer, records.offsets, len(records)
        data = address(buffer)
        self._reserve(n)
        decoded, context = self._decoded, self._context
        context[kernel.DATA] = data
        context[kernel.DATA_END] = data + len(buffer)
        context[kernel.OFFSETS] = offsets_at = address(offsets)
        context[kernel.N] = n
        decoded.buffer, decoded.offsets = buffer, offsets
        decoded.buffer_at, decoded.offsets_at = data, offsets_at
        decoded.n = n
        decoded.exceptions = kernel.decode_records(self._context_address)
        return decoded

    def _reserve(self, rows: int) -> None:
        if rows <= self._decoded.capacity and self._decoded.capacity:
            return
        capacity = max(_FIRST_CAPACITY, 1 << (rows - 1).bit_length())
        decoded = self._decoded = Decoded(capacity, len(self.wanted), self._context)
        context = self._context
        context[kernel.CAPACITY] = capacity
        context[kernel.WORDS], context[kernel.NULLS] = address(decoded.words), address(decoded.nulls)
        context[kernel.STATUS], context[kernel.FAULT_AT] = address(decoded.status), address(decoded.fault_at)
        for i, place in enumerate(_ROW_COLUMNS):
            context[place] = decoded.rows_at + 8 * capacity * i


# The words of the kernel's context that hold the addresses of the tables of `_schema_tables`.
_TABLE_PLACES = (
    kernel.SCHEMA_START,
    kernel.SCHEMA_COUNT,
    kernel.FIELD_KIND,
    kernel.FIELD_SLOT,
    kernel.FIELD_LIMIT,
)


def _schema_tables(schemas: list[Schema], wanted: tuple[str, ...]) -> tuple[NDArray[Any], ...]:
    """Return the kernel's tables of schemas.

    By version: the index of its first field (-1: no such version), and how many fields it has. By field: its kind, its
    place among the wanted ones (-1: not wanted), and the greatest number that it may hold.
    """
    slot_by_name = {name: slot for slot, name in enumerate(wanted)}
    if len(slot_by_name) != len(wanted):
        raise ValueError("a field is wanted twice")
    versions = max((schema.version + 1 for schema in schemas), default=0)
    starts, counts = np.full(versions, -1, np.int64), np.zeros(versions, np.int64)
    fields: list[Field] = []
    for schema in schemas:
        starts[schema.version], counts[schema.version] = len(fields), len(schema.fields)
        fields += schema.fields
    kinds = np.array([field.type.kind for field in fields], np.uint8)
    slots = np.array([slot_by_name.get(field.name, -1) for field in fields], np.int32)
    limits = np.array([field.type.unscaled_limit for field in fields], np.int64)
    return starts, counts, kinds, slots, limits
