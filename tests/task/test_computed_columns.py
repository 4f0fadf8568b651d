"""Columns computed for old rows: what one call gave stays as it was while the next, for other rows, is under way."""

from itertools import accumulate
from pathlib import Path

import numpy as np

from railgun.task.settings import TaskSettings
from railgun.wire.encode import encode_event
from reservoir.columns import ColumnData, ColumnKind
from tests.task.small_log import SmallLog, stream_text

METRIC = '\n[[metrics]]\nsql = "SELECT min(LOWER(UPPER(k))) AS least FROM s GROUP BY k OVER SLIDING 1 SECOND"'


def strings_of(data: ColumnData) -> list[str]:
    assert data.words is not None
    found = []
    for word in data.words.tolist():
        heap, start, length = word >> 62, (word >> 24) & ((1 << 38) - 1), word & 0xFFFFFF
        found.append(bytes(data.heaps[heap][start : start + length]).decode())
    return found


def test_strings_outlive_the_next_call(tmp_path: Path) -> None:
    log = SmallLog(stream_text() + METRIC)
    task = log.open(tmp_path, TaskSettings())
    try:
        log.feed(task)
        column_computer, columns = task.runtime._column_computer, task.runtime.program.hot.columns
        text = [column for column in columns if column.kind is ColumnKind.STRING]
        assert text

        def computed(keys: list[str]) -> ColumnData:
            records = [encode_event(1, f"e{n}", n, [f"e{n}", n, key]) for n, key in enumerate(keys)]
            offsets = np.array([0, *accumulate(map(len, records))], np.int64)
            return column_computer(np.frombuffer(b"".join(records), np.uint8), offsets, text)[-1]

        first = computed(["Ab", "", "C"])
        second = computed(["X_Y", "é"])
        assert strings_of(first) == ["ab", "", "c"]
        assert strings_of(second) == ["x_y", "é"]
    finally:
        task.close()


def test_rows_are_computed_in_blocks(tmp_path: Path) -> None:
    filtered = METRIC.replace("FROM s GROUP", "FROM s WHERE k LIKE '%7' GROUP")
    log = SmallLog(stream_text() + filtered)
    task = log.open(tmp_path, TaskSettings())
    try:
        log.feed(task)
        column_computer, columns = task.runtime._column_computer, task.runtime.program.hot.columns
        plain = [column for column in columns if column.kind is not ColumnKind.STRING]
        assert {column.kind for column in plain} == {ColumnKind.WORD, ColumnKind.ENTITY}
        records = [encode_event(1, f"e{n}", n, [f"e{n}", n, f"k{n % 70}"]) for n in range(2_500)]

        def computed(first: int, after: int) -> list[ColumnData]:
            own = records[first:after]
            offsets = np.array([0, *accumulate(map(len, own))], np.int64)
            return column_computer(np.frombuffer(b"".join(own), np.uint8), offsets, plain)

        whole, parts = computed(0, 2_500), [computed(first, first + 500) for first in range(0, 2_500, 500)]
        for place, column in enumerate(plain):
            for name in ("hi", "lo") if column.kind is ColumnKind.ENTITY else ("words", "nulls"):
                expected = np.concatenate([getattr(part[place], name) for part in parts])
                assert np.array_equal(getattr(whole[place], name), expected)
        (matches,) = (whole[place] for place, column in enumerate(plain) if column.kind is ColumnKind.WORD)
        assert matches.words is not None
        assert matches.words.tolist() == [n % 70 % 10 == 7 for n in range(2_500)]
    finally:
        task.close()
