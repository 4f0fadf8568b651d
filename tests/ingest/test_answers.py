"""Answers of many batches, put where their events stand, and as a table."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from railgun.catalog.definitions import parse_definitions
from railgun.ingest.answers import Answers, forms_of
from railgun.ingest.result_table import result_table
from railgun.wire.reply import Partial
from railgun.wire.table_validator import TableValidator
from railgun.wire.validator import Roles

KNOWN = parse_definitions("""
[streams.s]
time = "ts"
id = "id"
partitioners = ["k", "*"]
[streams.s.fields]
ts = "timestamp"
id = "long"
k = "string"
n = "long"
[[metrics]]
sql = "SELECT last(k) AS word, sum(n) AS wide, count(*) AS plain FROM s GROUP BY k OVER INFINITE"
[[metrics]]
sql = "SELECT max(ts) AS other FROM s OVER INFINITE"
""")
STREAM, METRICS = KNOWN.streams["s"], KNOWN.metrics_of("s")
NAMES = [metric.name for metric in METRICS]
HOMELY = [metric for metric in METRICS if metric.home == "k"]
FORMS = forms_of(STREAM.partitioners, METRICS)

BATCHES = st.lists(
    st.lists(
        st.tuples(
            st.none() | st.text(max_size=4),
            st.none() | st.integers(-(2**127) + 1, 2**127 - 1),
            st.integers(0, 2),
        ),
        min_size=1,
        max_size=6,
    ),
    max_size=6,
)


def replies(rows: list[tuple[str | None, int | None, int]], gap: int, warming: tuple[str, ...]) -> Any:
    """What a task would deliver; the bytes of its strings lie in a heap of its own, behind a gap."""
    n, heap = len(rows), bytearray(b"?" * gap)
    words, nulls = np.zeros((3, n, 2), np.uint64), np.zeros((3, n), np.uint8)
    for row, (text, number, late) in enumerate(rows):
        data = (text or "").encode()
        words[0, row, 0] = len(heap) << 24 | len(data)
        heap += data
        words[1, row] = [(number or 0) & 2**64 - 1, (number or 0) >> 64 & 2**64 - 1]
        words[2, row, 0] = late
        nulls[:2, row] = text is None, number is None
    late = np.array([each for _, _, each in rows], np.uint8)
    return SimpleNamespace(
        n=n,
        late=late,
        duplicate=(late == 0).astype(np.uint8),
        out=words,
        nulls=nulls,
        heap=np.frombuffer(bytes(heap), np.uint8),
        names=[metric.name for metric in HOMELY],
        warming=warming,
        partials=[Partial(1, 5, 1, n)] if n > 1 else [],
    )


@given(BATCHES, st.randoms(use_true_random=False), st.booleans())
def test_every_answer_comes_to_its_event(batches: list[Any], chance: Any, in_order: bool) -> None:
    total = sum(map(len, batches)) + 2
    places = list(range(total - 2))
    if not in_order:
        places = sorted(chance.sample(range(total), total - 2))
    answers, expected = Answers(total, FORMS["k"]), [(None, None, None, None, None, [], [])] * total
    done = 0
    for number, rows in enumerate(batches):
        within = places[done : done + len(rows)]
        warming = ("word",) * (number % 2)
        delivered = replies(rows, number, warming)
        answers.take(delivered, slice(done, done + len(rows)) if in_order else np.array(within, np.int64))
        for row, place in enumerate(within):
            text, wide, late = rows[row]
            said = [None, "rewritten", "discarded"][late]
            partial = [("wide", 5)] if row > 0 else []
            expected[place] = (text, wide, late, said, late == 0, list(warming), partial)
        done += len(rows)
    table = as_table(total, answers)
    names = ("word", "wide", "plain", "late_k", "duplicate_k", "warming", "partial")
    assert [tuple(row[name] for name in names) for row in table.to_pylist()] == expected
    assert table["id"].to_pylist() == list(range(total))
    assert table["other"].null_count == total


def as_table(n: int, answers: Answers) -> pa.Table:
    columns = {"ts": [0] * n, "id": range(n), "k": pa.array([None] * n, pa.string()), "n": [0] * n}
    batch = pa.table(columns).to_batches()[0]
    events = TableValidator(Roles(STREAM.schema(1), "ts", "id", ("k",))).admit(batch).events
    others = Answers(n, FORMS["*"])
    return result_table(STREAM, NAMES, events, {"k": answers, "*": others}, with_life=True)


def test_what_is_warming_at_several_partitioners_is_named_once_each() -> None:
    first, second = Answers(3, FORMS["k"]), Answers(3, FORMS["*"])
    first.take(replies([("a", 1, 0)] * 2, 0, ("word", "wide")), slice(0, 2))
    other = replies([("a", 1, 0)] * 2, 0, ("other",))
    other.names, other.out, other.nulls, other.partials = [], other.out[:0], other.nulls[:0], []
    second.take(other, slice(1, 3))
    batch = pa.table({"ts": [0] * 3, "id": range(3), "k": ["a"] * 3, "n": [0] * 3}).to_batches()[0]
    events = TableValidator(Roles(STREAM.schema(1), "ts", "id", ("k",))).admit(batch).events
    table = result_table(STREAM, NAMES, events, {"k": first, "*": second}, with_life=True)
    assert table["warming"].to_pylist() == [["word", "wide"], ["word", "wide", "other"], ["other"]]
