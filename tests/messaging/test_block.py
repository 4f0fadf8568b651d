"""Blocks: any records in, the same out, from any record on, within limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from railgun.messaging.block import (
    BLOCK_LIMIT_BYTES,
    BLOCK_LIMIT_RECORDS,
    check_block,
    make_blocks,
    open_blocks,
)
from railgun.wire.records import Records


def records_of(values: list[bytes]) -> Records:
    """The values in one buffer, with bytes before and after that belong to nobody."""
    offsets = np.cumsum([3, *map(len, values)], dtype=np.int64)
    return Records(np.frombuffer(b"xyz" + b"".join(values) + b"rest", np.uint8), offsets)


VALUES = st.lists(st.binary(max_size=30), min_size=1, max_size=20)


@given(st.lists(st.tuples(VALUES, st.booleans()), min_size=1, max_size=5), st.data())
def test_what_is_appended_is_read(appends: list[tuple[list[bytes], bool]], data: st.DataObject) -> None:
    pieces = [records_of(values) if is_inside else Records.of(values) for values, is_inside in appends]
    expected = [value for values, _ in appends for value in values]
    # Each append as a block of its own, so that there are several to read over.
    blocks = [block for piece in pieces for block in make_blocks([piece])]
    together = list(make_blocks(pieces))
    assert len(together) == 1
    assert [n for n, _ in blocks] == [check_block(value) for _, value in blocks]
    skip = data.draw(st.integers(0, blocks[0][0] - 1))
    max_records, max_bytes = data.draw(st.integers(1, 120)), data.draw(st.integers(0, 400))
    for values, before in (([value for _, value in blocks], skip), ([together[0][1]], skip)):
        got = open_blocks(values, before, max_records, max_bytes).to_list()
        rest = expected[skip:]
        fitting = 1
        while fitting < min(len(rest), max_records) and sum(map(len, rest[: fitting + 1])) <= max_bytes:
            fitting += 1
        assert got == rest[:fitting]


@pytest.mark.parametrize("is_inside", [False, True])
def test_blocks_keep_their_limits(is_inside: bool) -> None:
    sizes = (
        [10] * (BLOCK_LIMIT_RECORDS + 5) + [BLOCK_LIMIT_BYTES + 1] + [100_000] * 7 + [BLOCK_LIMIT_BYTES] + [0]
    )
    values = [bytes([i % 251]) * size for i, size in enumerate(sizes)]
    blocks = list(make_blocks([records_of(values) if is_inside else Records.of(values)]))
    assert sum(n for n, _ in blocks) == len(values)
    got: list[bytes] = []
    for n, block in blocks:
        inside = open_blocks([block], 0, 10_000, 1 << 40).to_list()
        assert len(inside) == n == check_block(block)
        assert n <= BLOCK_LIMIT_RECORDS
        assert n == 1 or sum(map(len, inside)) <= BLOCK_LIMIT_BYTES
        got += inside
    assert got == values


@given(VALUES, st.data())
def test_cut_or_prolonged_blocks_are_none(values: list[bytes], data: st.DataObject) -> None:
    ((_, block),) = make_blocks([Records.of(values)])
    assert check_block(block[: data.draw(st.integers(0, len(block) - 1))]) == 0
    assert check_block(block + b"x") == 0
    assert check_block(b"\2" + block[1:]) == 0
