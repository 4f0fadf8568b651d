"""Columns computed for old chunks in the thread that reads ahead, while live batches compute their own."""

import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import railgun
from railgun.task.arrivals import Arrivals
from railgun.task.settings import TaskSettings

DEFINITIONS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["card"]
lateness = "10ms"
[streams.s.fields]
id = "long"
ts = "timestamp"
card = "string"
word = "string"
[[metrics]]
sql = "SELECT count(*) AS n FROM s GROUP BY card OVER SLIDING 1 DAY"
"""
# None of their columns is in the chunks sealed before.
LATER = [
    """SELECT count(*) AS n{i}, last(LOWER(word)) AS w{i} FROM s WHERE UPPER(word) LIKE '%{i}%'
    GROUP BY card, word OVER SLIDING 1 SECOND""",
    "SELECT sum(ts - ts + {i} + 1) AS n{i} FROM s WHERE word LIKE '%{i}' GROUP BY card OVER SLIDING 1 SECOND",
]
SETTINGS = TaskSettings(chunk_events=32, segment_bytes=1 << 14, chunk_cache_bytes=1 << 14, fill_rows_max=50)
OLD, LIVE = 3_000, 400


def event(number: int) -> dict[str, Any]:
    word = f"Word{number % 7}" + "x" * (number % 40) + str(number % 3)
    return {"id": number, "ts": 1_700_000_000_000 + number, "card": f"c{number % 2}", "word": word}


def expected(kind: int, i: int, last: int) -> int:
    """What a later metric says at the event of a number, over the second that ends at it."""
    own = event(last)
    found = [event(k) for k in range(last - 999, last + 1)]
    if kind == 0:
        return sum(
            each["word"] == own["word"] and each["card"] == own["card"] and str(i) in each["word"].upper()
            for each in found
        )
    return (i + 1) * sum(each["word"].endswith(str(i)) and each["card"] == own["card"] for each in found)


class Watched:
    """Notes which threads read with which arrivals at the same time, and takes its time there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._inside: Counter[int] = Counter()
        self._lock = threading.Lock()
        self.together = 0
        self.threads: set[str] = set()
        fill = Arrivals._fill

        def watched(arrivals: Arrivals, decoded: Any) -> Any:
            with self._lock:
                self._inside[id(arrivals)] += 1
                self.together += self._inside[id(arrivals)] > 1
                self.threads.add(threading.current_thread().name)
            try:
                filled = fill(arrivals, decoded)
                time.sleep(0.0002)
                return filled
            finally:
                with self._lock:
                    self._inside[id(arrivals)] -= 1

        monkeypatch.setattr(Arrivals, "_fill", watched)


def test_a_fill_and_live_batches_compute_beside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with railgun.Engine(tmp_path / "data", settings=SETTINGS) as engine:
        engine.apply(DEFINITIONS)
        engine.score_many("s", [event(number) for number in range(OLD)])
        watched = Watched(monkeypatch)
        number = OLD
        for i in range(3):
            for kind, sql in enumerate(LATER):
                engine.add_metrics("s", sql.format(i=i).replace(f"n{i}", f"n{i}_{kind}"), wait=False)
                for _ in range(LIVE // 6):
                    engine.score("s", event(number))
                    number += 1
        engine.wait_until_warm("s")
        metrics = engine.score("s", event(number))["metrics"]
        for i in range(3):
            for kind in range(2):
                assert metrics[f"n{i}_{kind}"] == expected(kind, i, number), (i, kind)
    assert watched.together == 0
    assert "chunk-prefetch" in watched.threads
    assert len(watched.threads) > 1
