"""Answers gathered of reply records: each event has what the first record that spoke of it said."""

import tracemalloc
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from frontend.exchange.gathered import Gathered
from railgun.ingest.replies import JsonValue, values_by_metric
from railgun.plan.result_block import NO_METRICS, ResultBlock
from railgun.wire.reply import PlaneLayout, ReplyBatch, ReplyMetric, ReplySource, Shape

WORD = ReplyMetric("word", "long", 0, 0, Shape.WORD)
WIDE = ReplyMetric("wide", "integer128", 0, 0, Shape.WIDE)
TEXT = ReplyMetric("text", "string", 0, 0, Shape.STRING)
SOURCES = [
    ReplySource("s", "p", number, metrics)
    for number, metrics in enumerate([(WORD,), (WORD, WIDE, TEXT), (TEXT, WORD), (WIDE, TEXT), ()])
]


def value(metric: ReplyMetric, number: int) -> JsonValue:
    """What a record says of a metric in its row of this number."""
    if number % 5 == 0:
        return None
    if metric is TEXT:
        return "é" * (number % 7)
    return number << 70 if metric is WIDE and number % 2 else -number


def record(source: ReplySource, numbers: Sequence[int]) -> ReplyBatch:
    """A record that says `value` of rows."""
    n, heap, planes = len(numbers), bytearray(b"?"), []
    for metric in source.metrics:
        low, high = [], []
        for number in numbers:
            said = value(metric, number)
            if isinstance(said, str):
                heap += said.encode()
                said = len(heap) - len(said.encode()) << 24 | len(said.encode())
            low.append(int(said or 0) & 2**64 - 1)
            high.append(int(said or 0) >> 64 & 2**64 - 1)
        planes += [low, high] if metric is WIDE else [low]
    nothing = np.zeros(n, np.int64)
    nulls = [[value(metric, number) is None for number in numbers] for metric in source.metrics]
    return ReplyBatch(
        source=source,
        generation=0,
        place=0,
        schema=nothing,
        incarnation=nothing,
        sequence=nothing,
        time=nothing,
        offset=nothing,
        flags=np.zeros(n, np.uint8),
        id_refs=nothing,
        id_heap=b"",
        nulls=np.array(nulls, np.uint8).reshape(-1, n),
        planes=np.array(planes, np.uint64).reshape(-1, n),
        layout=PlaneLayout.of_shapes([metric.shape for metric in source.metrics]),
        heap=np.frombuffer(bytes(heap), np.uint8),
        partials=[],
    )


@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.sampled_from(SOURCES), st.lists(st.integers(0, 5), min_size=1)), max_size=5),
    st.integers(0, 2),
)
def test_each_row_has_its_first_answer(
    n: int, said: list[tuple[ReplySource, list[int]]], foreign: int
) -> None:
    gathered, expected, number = Gathered(n), dict[int, tuple[ReplySource, int]](), 0
    assert gathered.expect(None) == n
    for source, places in said:
        # A row comes once in a record; rows of other requests stand around these.
        rows = list(dict.fromkeys(place % n for place in places))
        batch = record(source, range(number, number + foreign + len(rows) + foreign))
        fresh = {row: (source, number + foreign + k) for k, row in enumerate(rows) if row not in expected}
        count = gathered.gather(batch, foreign, foreign + len(rows), np.array(rows, np.int64))
        assert count == len(fresh)
        expected |= fresh
        number += len(batch)
    assert np.flatnonzero(~gathered.waiting).tolist() == sorted(expected)
    for code, form in enumerate(each.form for each in gathered.sets):
        own = np.flatnonzero(gathered.codes == code)
        is_all = len(own) == n
        answers = gathered.chosen(None if is_all else own, code, NO_METRICS)
        found = values_by_metric(answers.block(), None)
        assert found.keys() == set(form.names)
        for place, row in enumerate(own.tolist()):
            source, at = expected[row]
            for metric in source.metrics:
                assert found[metric.name][place] == value(metric, at)


def test_of_a_record_for_many_requests_each_touches_its_rows_alone() -> None:
    rows = 20_000
    batch = record(SOURCES[1], range(1, rows + 1))
    values_by_metric(gathered_row(batch, 0), None)
    tracemalloc.start()
    try:
        found = values_by_metric(gathered_row(batch, rows - 2), None)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == {metric.name: [value(metric, rows - 1)] for metric in SOURCES[1].metrics}
    assert peak_bytes < rows, f"{peak_bytes} bytes for a row of {len(batch.planes)} words"


def gathered_row(batch: ReplyBatch, row: int) -> ResultBlock:
    """A request of one event, which is answered by this row."""
    gathered = Gathered(1)
    gathered.expect(None)
    assert gathered.gather(batch, row, row + 1, np.zeros(1, np.int64)) == 1
    return gathered.chosen(None, 0, NO_METRICS).block()
