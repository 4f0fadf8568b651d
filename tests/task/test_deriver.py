"""Columns derived for old rows: what one call gave stays as it was while the next, for other rows, is under way."""

from itertools import accumulate
from pathlib import Path

import numpy as np

from railgun.task.settings import TaskSettings
from railgun.wire.encode import encode_event
from reservoir.columns import ColumnData, Kind
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
        deriver, columns = task.machine._deriver, task.machine.program.hot.columns
        text = [column for column in columns if column.kind is Kind.STRING]
        assert text

        def derived(keys: list[str]) -> ColumnData:
            records = [encode_event(1, f"e{n}", n, [f"e{n}", n, key]) for n, key in enumerate(keys)]
            offsets = np.array([0, *accumulate(map(len, records))], np.int64)
            return deriver(np.frombuffer(b"".join(records), np.uint8), offsets, text)[-1]

        first = derived(["Ab", "", "C"])
        second = derived(["X_Y", "é"])
        assert strings_of(first) == ["ab", "", "c"]
        assert strings_of(second) == ["x_y", "é"]
    finally:
        task.close()
