"""Kafka's default partitioner: its published vectors, by value and by column."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from railgun.wire.columns import Column
from railgun.wire.long_text import longs_as_text
from railgun.wire.partition import NOT_SENT, murmur2, partition_column, partition_key, partition_of
from railgun.wire.schema import LONG, STRING
from reservoir.native.jit import address

# From the tests of Kafka's own clients (org.apache.kafka.common.utils.UtilsTest) and of KafkaJS.
PUBLISHED = [
    (b"21", -973932308),
    (b"foobar", -790332482),
    (b"a-little-bit-long-string", -985981536),
    (b"a-little-bit-longer-string", -1486304829),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    (b"abc", 479470107),
    (b"", 275646681),
    (b"a", -1563381124),
]
LONGS = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(("key", "signed"), PUBLISHED)
def test_published_hashes(key: bytes, signed: int) -> None:
    buffer = np.frombuffer(key + b"\xff" * 4, np.uint8)
    assert int(murmur2(address(buffer), len(key))) == signed % 2**32
    assert partition_of(key, 1000) == (signed & 0x7FFFFFFF) % 1000
    assert partition_of(key, 1) == 0


def plain_murmur2(key: bytes) -> int:
    """The definition, on Python's integers."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = 0x9747B28C ^ len(key)
    whole = len(key) // 4 * 4
    for i in range(0, whole, 4):
        k = int.from_bytes(key[i : i + 4], "little") * m & mask
        h = h * m & mask ^ ((k ^ k >> 24) * m & mask)
    if whole < len(key):
        h = (h ^ int.from_bytes(key[whole:], "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


@given(st.binary(max_size=100), st.integers(1, 4096))
def test_any_key(key: bytes, partitions: int) -> None:
    assert partition_of(key, partitions) == (plain_murmur2(key) & 0x7FFFFFFF) % partitions


@given(st.lists(st.none() | st.text(max_size=12)), st.integers(1, 100))
def test_columns_of_strings(values: list[str | None], partitions: int) -> None:
    texts = [(value or "").encode() for value in values]
    starts = np.cumsum([0, *map(len, texts)])
    refs = np.array([int(start) << 24 | len(text) for start, text in zip(starts, texts)], np.uint64)
    heap = np.frombuffer(b"".join(texts) + b"\0", np.uint8)
    column = Column(STRING, refs, np.array([value is None for value in values], np.uint8), heap)
    expected = [
        NOT_SENT if value is None else partition_of(partition_key(value), partitions) for value in values
    ]
    assert partition_column(column, partitions).tolist() == expected


@given(st.lists(LONGS), st.integers(1, 100))
def test_columns_of_longs(values: list[int], partitions: int) -> None:
    column = Column(LONG, np.array(values, np.int64).view(np.uint64))
    expected = [partition_of(partition_key(value), partitions) for value in values]
    assert partition_column(column, partitions).tolist() == expected
    text = longs_as_text(column)
    assert [text.string(i) for i in range(len(values))] == [str(value) for value in values]
