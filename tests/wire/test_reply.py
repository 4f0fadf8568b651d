"""Reply records: what the interpreter's memory holds comes out at the front-end, row by row."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from railgun.wire.decode import Decoder
from railgun.wire.encode import encode_event
from railgun.wire.records import Records
from railgun.wire.reply import (
    BatchReplies,
    Partial,
    ReplyBatch,
    ReplyEncoder,
    ReplyFlag,
    ReplyMetric,
    ReplyRecordError,
    ReplySource,
    Shape,
    decode_reply,
)
from railgun.wire.schema import Schema

SCHEMA = Schema(1, ())
SHAPES = st.lists(st.sampled_from(Shape), max_size=8)
STRIDE = 64


def source_of(shapes: list[Shape]) -> ReplySource:
    metrics = tuple(
        ReplyMetric(f"m{i}", "decimal" if shape is Shape.WIDE else "long", 38, 2, shape, warming=i == 1)
        for i, shape in enumerate(shapes)
    )
    return ReplySource("payments", "card", 3, metrics)


def values_of(batch: ReplyBatch, metric: int) -> list[Any]:
    words, shape = batch.words(metric), batch.source.metrics[metric].shape
    values: list[Any] = []
    for row in range(len(batch)):
        word = int(words[row, 0])
        if batch.nulls[metric, row]:
            assert word == 0
            values.append(None)
        elif shape is Shape.STRING:
            start = word >> 24
            values.append(batch.heap[start : start + (word & 0xFFFFFF)].tobytes().decode())
        else:
            values.append(word | int(words[row, 1]) << 64 if shape is Shape.WIDE else word)
    return values


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[Shape], list[dict[str, Any]]]:
    shapes = draw(SHAPES)
    limits = {Shape.WORD: st.integers(0, 2**64 - 1), Shape.WIDE: st.integers(0, 2**128 - 1)}
    value = {**limits, Shape.STRING: st.text(max_size=20)}
    row = st.fixed_dictionaries(
        {
            "id": st.text(max_size=20),
            "to": st.integers(-1, 3),
            "time": st.integers(-(2**63) + 1, 2**63 - 1),
            "incarnation": st.integers(-(2**63), 2**63 - 1),
            "flags": st.integers(0, 7),
            "values": st.tuples(*(st.none() | value[shape] for shape in shapes)),
        }
    )
    return shapes, draw(st.lists(row, min_size=1, max_size=20))


def results_of(shapes: list[Shape], rows: list[dict[str, Any]]) -> tuple[Any, Any, Any]:
    """The interpreter's memory: words hold garbage where null."""
    words = np.full((len(shapes), STRIDE, 2), 0xDEADBEEF, np.uint64)
    nulls = np.zeros((len(shapes), STRIDE), np.uint8)
    heap = b"before"
    for i, row in enumerate(rows):
        for j, (shape, value) in enumerate(zip(shapes, row["values"])):
            nulls[j, i] = value is None
            if value is None:
                continue
            if shape is Shape.STRING:
                words[j, i, 0] = len(heap) << 24 | len(value.encode())
                heap += value.encode()
            else:
                words[j, i] = value & (2**64 - 1), value >> 64 if shape is Shape.WIDE else 7
    return words, nulls, np.frombuffer(heap, np.uint8)


@given(batches())
def test_every_destination_gets_its_rows(batch: tuple[list[Shape], list[dict[str, Any]]]) -> None:
    shapes, rows = batch
    raw = [
        encode_event(1, row["id"], row["time"], (), row["to"], row["incarnation"], i)
        for i, row in enumerate(rows)
    ]
    decoded = Decoder([SCHEMA], []).decode(Records.of(raw))
    flags = np.array([row["flags"] for row in rows], np.uint8)
    offsets = np.arange(len(rows), dtype=np.int64) * 3 + 1000
    encoder = ReplyEncoder(source_of(shapes))
    replies = BatchReplies(decoded, flags, offsets, *results_of(shapes, rows), generation=5, place=6)
    records = encoder.encode(replies)
    assert [to for to, _ in records] == sorted({row["to"] for row in rows} - {-1})
    for to, record in records:
        expected = [(i, row) for i, row in enumerate(rows) if row["to"] == to]
        got = decode_reply(record)
        assert (got.source, got.generation, got.place) == (source_of(shapes), 5, 6)
        assert got.ids() == [row["id"] for _, row in expected]
        assert got.sequence.tolist() == [i for i, _ in expected]
        assert got.offset.tolist() == [1000 + 3 * i for i, _ in expected]
        assert got.time.tolist() == [row["time"] for _, row in expected]
        assert got.incarnation.tolist() == [row["incarnation"] for _, row in expected]
        assert got.flags.tolist() == [row["flags"] for _, row in expected]
        for j in range(len(shapes)):
            assert values_of(got, j) == [row["values"][j] for _, row in expected]
        assert len(record) % 8 == 0


def encoded(n: int, text: str = "x", partials: list[Partial] | None = None) -> bytes:
    shapes = [Shape.WORD, Shape.STRING]
    rows = [{"values": (i, text * i)} for i in range(n)]
    raw = [encode_event(1, f"id{i}", i, (), 2 if i % 2 else 4, 9, i) for i in range(n)]
    decoded = Decoder([SCHEMA], []).decode(Records.of(raw))
    flags = np.full(n, ReplyFlag.DUPLICATE, np.uint8)
    offsets = np.arange(n, dtype=np.int64)
    replies = BatchReplies(decoded, flags, offsets, *results_of(shapes, rows), partials=partials or [])
    records = ReplyEncoder(source_of(shapes)).encode(replies)
    return dict(records)[2]


def test_a_record_larger_than_the_first_buffer() -> None:
    batch = decode_reply(encoded(64, "é" * 2000))
    assert values_of(batch, 1) == ["é" * 2000 * i for i in range(1, 64, 2)]


def test_partials_are_told_by_the_rows_of_the_destination() -> None:
    partials = [Partial(0, 77, 0, 10), Partial(1, -5, 4, 5), Partial(1, 8, 5, 6)]
    batch = decode_reply(encoded(10, partials=partials))
    assert batch.sequence.tolist() == [1, 3, 5, 7, 9]
    assert batch.partials == [Partial(0, 77, 0, 5), Partial(1, 8, 2, 3)]
    assert batch.source.metrics[1].warming


def test_nobody_waits() -> None:
    decoded = Decoder([SCHEMA], []).decode(Records.of([encode_event(1, "a", 1, ())]))
    words, nulls, heap = results_of([], [])
    encoder = ReplyEncoder(source_of([]))
    replies = BatchReplies(decoded, np.zeros(1, np.uint8), np.zeros(1, np.int64), words, nulls, heap)
    assert encoder.encode(replies) == []


@pytest.mark.parametrize("end", [0, 1, 79, 80, 200, -8, -1])
def test_a_cut_record_says_so(end: int) -> None:
    with pytest.raises(ReplyRecordError):
        decode_reply(encoded(9)[:end])


@given(st.integers(0, 119), st.integers(1, 255))
def test_damaged_heads_never_crash(place: int, flip: int) -> None:
    record = bytearray(encoded(9))
    record[place] ^= flip
    try:
        batch = decode_reply(bytes(record))
    except ReplyRecordError:
        return
    assert len(batch) == 4
