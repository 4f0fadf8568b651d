"""Encodes events as records: one at a time from Python values, or many at a time from columns.

Engines, front-ends and backfills call it.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from railgun.wire import encode_kernel as kernel
from railgun.wire.columns import Column, EventColumns
from railgun.wire.records import EVENT, Records
from railgun.wire.schema import WireKind
from reservoir.native.jit import address

NO_REPLY = -1

# The number of values that a record has before its event's fields.
_HEAD_VALUES = 7
_EVENT = bytes((EVENT,))
_encode = msgspec.msgpack.Encoder().encode


def encode_event(
    schema_version: int,
    event_id: str,
    time_ms: int,
    values: Sequence[Any],
    reply_to: int = NO_REPLY,
    incarnation: int = 0,
    sequence: int = 0,
    source: tuple[int, int, int] | None = None,
) -> bytes:
    """Return one event record.

    values: in schema order, as the validator returns them: int for long, timestamp and unscaled decimal, float for
        double, bool, str, None for null. Values missing at the end are null.
    source: (partition, offset, committed) of the input topic from which the event came; None if it came from none.
    """
    head = (schema_version, event_id, time_ms, reply_to, incarnation, sequence, source)
    return _EVENT + _encode((*head, *values))


def encode_values(values: Sequence[Any]) -> bytes:
    """Encode an event's fields for `join_event`, while their values are at hand."""
    return _encode(values)[len(_array_start(len(values))) :]


def join_event(
    schema_version: int,
    event_id: str,
    time_ms: int,
    fields: int,
    encoded: bytes,
    reply_to: int = NO_REPLY,
    incarnation: int = 0,
    sequence: int = 0,
    source: tuple[int, int, int] | None = None,
) -> bytes:
    """Return one event record, with the same bytes as `encode_event` returns.

    fields, encoded: how many values there are, and the result of `encode_values` for them.
    """
    head = _encode((schema_version, event_id, time_ms, reply_to, incarnation, sequence, source))
    return b"".join((_record_start(fields), head[1:], encoded))


@cache
def _array_start(n: int) -> bytes:
    """Return the first bytes of a MessagePack array of n values."""
    return _encode([None] * n)[: -n or None]


@cache
def _record_start(fields: int) -> bytes:
    return _EVENT + _array_start(_HEAD_VALUES + fields)


def encode_columns(
    schema_version: int,
    events: EventColumns,
    reply_to: int = NO_REPLY,
    incarnation: int = 0,
    first_sequence: int = 0,
    source: tuple[int, NDArray[np.int64], int] | None = None,
) -> Records:
    """Return many event records, with the same bytes as `encode_event` returns.

    Sequences count up from `first_sequence`.
    source: the partition of the input topic, the offsets int64[n] in it, and its committed offset.
    """
    n = len(events)
    table = np.zeros((len(events.fields), kernel.FIELD_WORDS), np.int64)
    for row, column in zip(table, events.fields):
        row[:] = _description(column)
    out = np.empty(_worst_case_bytes(events), np.uint8)
    offsets = np.empty(n + 1, np.int64)
    context = np.zeros(kernel.CONTEXT_WORDS, np.int64)
    context[: kernel.SOURCE_PARTITION] = n, schema_version, reply_to, incarnation, first_sequence
    context[kernel.SOURCE_PARTITION] = -1 if source is None else source[0]
    context[kernel.SOURCE_OFFSETS] = 0 if source is None else address(source[1])
    context[kernel.SOURCE_COMMITTED] = 0 if source is None else source[2]
    assert events.ids.heap is not None
    context[kernel.TIMES] = address(events.times)
    context[kernel.ID_WORDS] = address(events.ids.words)
    context[kernel.ID_HEAP] = address(events.ids.heap)
    context[kernel.FIELDS], context[kernel.FIELD_COUNT] = address(table), len(table)
    context[kernel.OUT], context[kernel.OUT_OFFSETS] = address(out), address(offsets)
    size_bytes = kernel.encode_records(address(context))
    return Records(out[:size_bytes], offsets)


def _description(column: Column) -> tuple[int, int, int, int]:
    nulls = 0 if column.nulls is None else address(column.nulls)
    heap = 0 if column.heap is None else address(column.heap)
    return int(column.type.kind), address(column.words), nulls, heap


def _worst_case_bytes(events: EventColumns) -> int:
    fixed = kernel.HEADER_LIMIT_BYTES + kernel.VALUE_LIMIT_BYTES * len(events.fields)
    strings = [column for column in (events.ids, *events.fields) if column.type.kind is WireKind.STRING]
    text = sum(int(column.lengths_bytes().sum()) for column in strings)
    return fixed * len(events) + text + kernel.OVERRUN_BYTES
