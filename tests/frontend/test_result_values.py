"""Results as JSON has them, whole groups of metrics at a time, are those that each column tells one by one."""

from decimal import Decimal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from railgun.ingest.replies import values_by_metric
from railgun.language.types import BOOLEAN, DOUBLE, INTEGER128, LONG, STRING, TIMESTAMP, Type, decimal
from railgun.plan.outputs import Value
from railgun.plan.result_block import ResultBlock, ResultForm

TYPES = (LONG, DOUBLE, STRING, BOOLEAN, TIMESTAMP, INTEGER128, decimal(6, 2), decimal(18, 0), decimal(38, 6))
SPECIAL = st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63), 10**18 - 1, 5, -5, 99, -100])


def words(draw: st.DrawFn, type_: Type, heap: bytearray) -> tuple[int, int]:
    if type_ == DOUBLE:
        return int(np.float64(draw(st.floats(allow_nan=False, allow_infinity=False))).view(np.uint64)), 0
    if type_ == BOOLEAN:
        return draw(st.integers(0, 1)), 0
    if type_ == STRING:
        text = draw(st.text(max_size=5)).encode()
        heap += text
        return (len(heap) - len(text)) << 24 | len(text), 0
    if type_ == INTEGER128 or type_.precision > 18:
        limit = 10**38 - 1 if type_.precision else 2**127 - 1
        number = draw(SPECIAL | st.integers(-limit, limit))
    else:
        limit = 10**type_.precision - 1 if type_.precision else 2**63 - 1
        number = max(-limit, min(limit, draw(SPECIAL | st.integers(-limit, limit))))
    return number & 2**64 - 1, number >> 64 & 2**64 - 1


@st.composite
def blocks(draw: st.DrawFn) -> ResultBlock:
    types = draw(st.lists(st.sampled_from(TYPES), max_size=12))
    form = ResultForm.of((f"m{place}", type_) for place, type_ in enumerate(types))
    n, heap = draw(st.integers(0, 4)), bytearray(b"??")
    block = ResultBlock.nothing(form, n)
    wide = form.wide.tolist()
    for place, type_ in enumerate(types):
        for row in range(n):
            if draw(st.integers(0, 3)):
                low, high = words(draw, type_, heap)
                block.low[place, row], block.nulls[place, row] = low, 0
                if place in wide:
                    block.high[wide.index(place), row] = high
            else:
                # Whatever stands where nothing is said.
                block.low[place, row] = draw(SPECIAL) & 2**64 - 1
    return ResultBlock(form, block.low, block.high, block.nulls, np.frombuffer(bytes(heap), np.uint8))


def told(value: Value) -> object:
    return f"{value:f}" if isinstance(value, Decimal) else value


def same(a: object, b: object) -> bool:
    return type(a) is type(b) and repr(a) == repr(b)


@given(blocks(), st.data())
def test_values_are_those_of_each_column(block: ResultBlock, data: st.DataObject) -> None:
    columns = block.columns()
    n = block.low.shape[1]
    expected = {name: [told(column.value(row)) for row in range(n)] for name, column in columns.items()}
    found = values_by_metric(block, None)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert all(map(same, found[name], values)), name
        assert len(found[name]) == n
    chosen = data.draw(st.lists(st.sampled_from([*block.form.names, "other"]), unique=True))
    some = values_by_metric(block, chosen)
    assert some.keys() == set(chosen) & expected.keys()
    assert all(all(map(same, some[name], expected[name])) for name in some)
    rows = data.draw(st.lists(st.integers(0, n - 1), max_size=5)) if n else []
    picked = values_by_metric(block.rows(np.array(rows, np.int64)), None)
    assert all(
        all(map(same, picked[name], [expected[name][row] for row in rows])) for name in block.form.names
    )
