"""The word of a NULL may be anything: whoever reads results or columns gives the same whatever is planted there."""

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from numpy.typing import NDArray

from railgun.catalog.definitions import parse_definitions
from railgun.engine.live_stream import check_record_sizes
from railgun.ingest.answers import Answers
from railgun.ingest.derived import DerivedMetrics
from railgun.ingest.replies import values_by_metric
from railgun.language.types import BOOLEAN, DOUBLE, INTEGER128, LONG, STRING, TIMESTAMP, Type, decimal
from railgun.plan.result_block import ResultBlock, ResultForm
from railgun.wire import schema as wire
from railgun.wire.columns import Column, EventColumns
from railgun.wire.encode import encode_columns
from railgun.wire.partition import partition_column

RESULT_TYPES = (
    LONG,
    DOUBLE,
    STRING,
    BOOLEAN,
    TIMESTAMP,
    INTEGER128,
    decimal(6, 2),
    decimal(18, 0),
    decimal(38, 6),
)
FIELD_TYPES = (wire.STRING, wire.LONG, wire.DOUBLE, wire.BOOLEAN, wire.decimal_type(18, 4), wire.TIMESTAMP)
HEAP = np.frombuffer("häuser".encode(), np.uint8)
# References into the middle of a letter, behind the heap, and of the greatest length; no booleans, no decimals.
PLANTED = (2 << 24 | 2, 1 << 61 | 5, 1 << 63, 2**64 - 1, 0x7FFF_FFFF_FFFF_FFFF, 0xFFFF_FFFF)
# Few strings are read one by one, many by Arrow.
COUNTS = (1, 7, 40)


def nulls_of(n: int) -> NDArray[np.uint8]:
    """Every second one is null, the first too."""
    return (np.arange(n) % 2 == 0).astype(np.uint8)


def word_of(is_text: bool) -> int:
    return 3 if is_text else 1


def words_of(is_text: bool, nulls: NDArray[np.uint8], planted: int) -> NDArray[np.uint64]:
    return np.where(nulls != 0, np.uint64(planted), np.uint64(word_of(is_text)))


def block_of(types: tuple[Type, ...], n: int, planted: int) -> ResultBlock:
    """Results of these types, every second one null, with a word planted in each null."""
    form = ResultForm.of((f"m{place}", type_) for place, type_ in enumerate(types))
    nulls = np.stack([nulls_of(n)] * len(types))
    low = np.stack([words_of(type_ == STRING, nulls_of(n), planted) for type_ in types])
    high = np.where(nulls[form.wide] != 0, np.uint64(planted), np.uint64(0))
    return ResultBlock(form, low, high, nulls, HEAP)


def by_values(block: ResultBlock) -> Any:
    return values_by_metric(block, None)


def by_column(block: ResultBlock) -> Any:
    return [[column.value(row) for row in range(block.low.shape[1])] for column in block.columns().values()]


def by_arrow(block: ResultBlock) -> Any:
    arrays = [column.arrow() for column in block.columns().values()]
    for array in arrays:
        array.validate(full=True)
    return [[array.to_pylist(), array.drop_null(), array.slice(1)] for array in arrays]


def by_time_of_spark(block: ResultBlock) -> Any:
    """Milliseconds to microseconds, checked, as tables of events have them."""
    times = [column.arrow() for column in block.columns().values() if column.type == TIMESTAMP]
    return [pc.multiply_checked(array, 1_000).cast(pa.timestamp("us")).to_pylist() for array in times]


def by_rows(block: ResultBlock) -> Any:
    return values_by_metric(block.rows(np.arange(block.low.shape[1])[::-1]), None)


def by_answers(block: ResultBlock) -> Any:
    """As replies of a task, put where their events stand."""
    types, n = block.form.types, block.low.shape[1]
    out = np.zeros((len(types), n, 2), np.uint64)
    out[:, :, 0] = block.low
    out[block.form.wide, :, 1] = block.high
    nothing = np.zeros(n, np.uint8)
    answers = Answers(n, block.form)
    reply = SimpleNamespace(
        n=n, out=out, nulls=block.nulls, heap=block.heap, names=block.form.names, late=nothing,
        duplicate=nothing, warming=(), partials=(),
    )  # fmt: skip
    answers.take(reply, slice(0, n))  # type: ignore[arg-type]
    return values_by_metric(answers.block(), None)


@pytest.mark.parametrize("read", [by_values, by_column, by_arrow, by_time_of_spark, by_rows, by_answers])
@pytest.mark.parametrize("n", COUNTS)
def test_results(read: Callable[[ResultBlock], Any], n: int) -> None:
    clean = read(block_of(RESULT_TYPES, n, 0))
    for planted in PLANTED:
        assert read(block_of(RESULT_TYPES, n, planted)) == clean, hex(planted)


DEFINITIONS = """
[streams.s]
time = "ts"
[streams.s.fields]
ts = "timestamp"
x = "long"
t = "string"
b = "boolean"
d = "double"
[[metrics]]
sql = "SELECT max(t) AS word, sum(x) AS wide, max(d) AS dotted, max(ts) AS latest FROM s OVER INFINITE"
[[metrics]]
sql = '''DERIVE word AS same, UPPER(word) AS up, wide + 1 AS more, dotted * 2 AS twice, COALESCE(word, 'no') AS some,
  t AS own, t || word AS both, b AS flag, b OR x = 1 AS either, COALESCE(x, wide) AS one, latest AS time,
  CAST(x AS string) AS digits, SUBSTR(t, 1, x) AS part, LENGTH(t) AS long FROM s'''
"""


@pytest.mark.parametrize("n", COUNTS)
def test_derived(n: int) -> None:
    known = parse_definitions(DEFINITIONS)
    metrics, schema = known.metrics_of("s"), known.streams["s"].schema(1)
    derived = DerivedMetrics(known.derived)
    types = tuple(each.resolved.result_type for each in metrics)
    form = ResultForm.of((each.name, type_) for each, type_ in zip(metrics, types))

    def results(planted: int) -> Any:
        block = dataclasses.replace(block_of(types, n, planted), form=form)
        events = columns_of([field.type for field in schema.fields], n, planted)
        found = derived.answers(events, schema, {"*": Answers.of(block)})
        assert found is not None
        return values_by_metric(found.block(), None)

    clean = results(0)
    assert all(values[0] is None for name, values in clean.items() if name != "some")
    for planted in PLANTED:
        assert results(planted) == clean, hex(planted)


def columns_of(types: list[wire.FieldType], n: int, planted: int) -> EventColumns:
    nulls = nulls_of(n)
    fields = [
        Column(type_, words_of(is_text, nulls, planted), nulls, HEAP if is_text else None)
        for type_ in types
        for is_text in [type_.kind is wire.WireKind.STRING]
    ]
    ids = Column(wire.STRING, np.full(n, 1, np.uint64), None, HEAP)
    return EventColumns(ids, np.arange(n, dtype=np.int64), tuple(fields))


@pytest.mark.parametrize("n", COUNTS)
def test_events(n: int) -> None:
    clean = columns_of([*FIELD_TYPES], n, 0)
    for planted in PLANTED:
        events = columns_of([*FIELD_TYPES], n, planted)
        records, expected = encode_columns(1, events), encode_columns(1, clean)
        assert records.buffer.tobytes() == expected.buffer.tobytes()
        check_record_sizes(1, events, 0)
        for column, sure in zip(events.fields[:2], clean.fields[:2]):
            assert partition_column(column, 7).tolist() == partition_column(sure, 7).tolist()
        assert events.fields[0].lengths_bytes().tolist() == [0 if null else 3 for null in nulls_of(n)]
