"""Derived metrics by columns: operands as they are, constants, strings of every origin; and many threads at once."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from railgun.engine.engine import Engine
from railgun.ingest import derived
from railgun.ingest.replies import python_replies
from tests.oracle.compare import differences
from tests.oracle.stream import Oracle

STREAM = """
[streams.s]
time = "ts"
[streams.s.fields]
ts = "timestamp"
x = "long"
t = "string"
[[metrics]]
sql = "SELECT count(*) AS n, max(t) AS word, min(t) AS least FROM s OVER INFINITE"
"""
FORMS = (
    "n AS a",
    "word AS a, n AS b",
    "x AS a",
    "t AS a, ts AS b",
    "7 AS a",
    "'seven' AS a, UPPER(word) AS b",
    "COALESCE(t, least, 'none') AS a, LOWER(t) AS b, 'x' AS c, n + x AS d",
    "n = x AS a, word AS b",
)


def events(count: int) -> list[dict[str, Any]]:
    texts = (None, "", "Ää", "b" * 40, "c")
    return [
        {"ts": 1_000 + number, "x": None if number % 3 == 0 else number, "t": texts[number % len(texts)]}
        for number in range(count)
    ]


def test_each_form_of_one_and_of_many_events_is_what_the_oracle_says(tmp_path: Path) -> None:
    for number, form in enumerate(FORMS):
        definitions = STREAM + f'[[metrics]]\nsql = "DERIVE {form} FROM s"\n'
        model = Oracle(definitions).streams["s"]
        with Engine(tmp_path / str(number), durability="os") as engine:
            engine.apply(definitions)
            for event in events(12):
                assert not differences(model.score(event), engine.score("s", event)), (form, event)
            many = events(300)
            for event, reply in zip(many, engine.score_many("s", many), strict=True):
                assert not differences(model.score(event), reply), (form, event)


def wrong_in_threads(folder: Path) -> int:
    """How many of the replies that threads make of scored events with one program are wrong."""
    with Engine(folder, durability="os") as engine:
        engine.apply(STREAM + '[[metrics]]\nsql = "DERIVE x + x AS twice, LOWER(t) AS low FROM s"\n')
        scored = [
            engine.score_each("s", [json.dumps({"ts": 1, "x": n, "t": f"T{n}"}).encode()] * 50)
            for n in range(8)
        ]

        def wrong(number: int) -> int:
            replies = python_replies(scored[number % 8])
            right = 2 * (number % 8), f"t{number % 8}"
            return sum((each["metrics"]["twice"], each["metrics"]["low"]) != right for each in replies)

        with ThreadPoolExecutor(8) as pool:
            return sum(pool.map(wrong, range(800)))


def test_threads_share_a_program(tmp_path: Path) -> None:
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        assert wrong_in_threads(tmp_path / "data") == 0
    finally:
        sys.setswitchinterval(interval_s)


def test_many_events_are_computed_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived, "_BLOCK_ROWS", 7)
    test_each_form_of_one_and_of_many_events_is_what_the_oracle_says(tmp_path)
