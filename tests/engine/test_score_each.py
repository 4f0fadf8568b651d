"""Events as texts, each by itself: by columns or one by one the outcome is the same, and it is that of `score`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from railgun.engine.engine import Engine
from railgun.engine.errors import EventError
from railgun.ingest import intake
from railgun.ingest.intake import MalformedEventError
from railgun.ingest.replies import replies_of
from railgun.wire.values import decode_json

DEFINITIONS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["k", "*"]
partitions = 2
[streams.s.fields]
id = "long"
ts = "timestamp"
k = "string"
d = "double"
n = "long"
m = "decimal(9,2)"
b = "boolean"
[[metrics]]
sql = '''SELECT sum(d) AS sd, sum(n) AS sn, sum(m) AS sm, avg(m) AS am, last(b) AS lb FROM s
         GROUP BY k OVER SLIDING 1 DAY'''
[[metrics]]
sql = "SELECT count(*) AS c, max(k) AS mk, min(ts) AS mt, first(m) AS fm FROM s OVER INFINITE"
[streams.bare]
[streams.bare.fields]
x = "long"
[[metrics]]
sql = "SELECT sum(x) AS sx FROM bare OVER INFINITE"
"""
GOOD: list[dict[str, Any]] = [
    {"id": 1, "ts": 1_700_000_000_000, "k": "a", "d": 1.5, "n": 2**62, "m": "12.34", "b": True},
    {"id": 2, "ts": "2023-11-14T22:13:20.5Z", "k": "ä", "d": 3, "n": 2**62, "m": "-0.05", "b": False},
    {"id": 3, "ts": 1_700_000_000_000, "k": None, "unknown": [1, {"x": 2}], "other": None},
    {"id": 2, "ts": 1_700_000_000_001, "k": "b"},
    {"id": 4, "ts": 1, "k": "a", "d": -0.0, "n": -(2**63), "m": 7},
    {"id": 5, "ts": 1_700_000_000_003, "k": "a", "d": 1e300, "n": 2**63 - 1, "m": 0},
]
BAD: list[bytes] = [
    b'{"id": 6, "ts": 1, "k": 5}',
    b'{"id": 6.5, "ts": "soon", "d": "1"}',
    b'{"id": 6, "ts": 1, "m": 1.234}',
    b'{"ts": 1}',
    b"[]",
]
MALFORMED: list[bytes] = [b'{"id": ', b"\xff", b""]


@pytest.fixture(params=[0, 10**9], ids=["by columns", "one by one"])
def worth_columns(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "_WORTH_A_COLUMN", request.param)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine(tmp_path / "data", durability="os") as opened:
        opened.apply(DEFINITIONS)
        yield opened


def texts(events: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(event).encode() for event in events]


def replies(engine: Engine, stream: str, sent: list[bytes]) -> list[Any]:
    return [
        json.loads(msgspec.json.encode(each)) for each in replies_of(engine.score_each(stream, sent), None)
    ]


@pytest.mark.usefixtures("worth_columns")
def test_the_same_as_one_after_another(engine: Engine, tmp_path: Path) -> None:
    with Engine(tmp_path / "alone", durability="os") as alone:
        alone.apply(DEFINITIONS)
        expected = [json.loads(json.dumps(alone.score("s", event))) for event in GOOD]
    assert replies(engine, "s", texts(GOOD)) == expected


@pytest.mark.usefixtures("worth_columns")
def test_what_is_refused_harms_no_other(engine: Engine, tmp_path: Path) -> None:
    with Engine(tmp_path / "alone", durability="os") as alone:
        alone.apply(DEFINITIONS)
        expected = [json.loads(json.dumps(alone.score("s", event))) for event in GOOD]
        why = []
        for bad in BAD:
            with pytest.raises(EventError) as refused:
                alone.score("s", decode_json(bad))
            why.append(refused.value.errors)
    good = texts(GOOD)
    scored = engine.score_each("s", [*BAD[:2], *good[:3], *MALFORMED, *good[3:], *BAD[2:]])
    assert scored.accepted.rows is not None
    assert scored.accepted.rows.tolist() == [2, 3, 4, 8, 9, 10]
    assert [json.loads(msgspec.json.encode(each)) for each in replies_of(scored, None)] == expected
    refused = scored.accepted.refused
    assert [refused[place].errors for place in (0, 1, 11, 12, 13)] == why
    assert [type(refused[place]) for place in (5, 6, 7)] == [MalformedEventError] * 3


@pytest.mark.usefixtures("worth_columns")
def test_bad_values_among_columns(engine: Engine) -> None:
    """What can be decoded and not taken: the rest goes by columns all the same."""
    ahead = json.dumps({**GOOD[0], "id": 9, "ts": 99_999_999_999_999}).encode()
    scored = engine.score_each("s", [ahead, *texts(GOOD[:2])])
    assert list(scored.accepted.refused) == [0]
    assert "max_future" in str(scored.accepted.refused[0])
    assert [reply.metrics.m5 for reply in replies_of(scored, None)] == [1, 2]


@pytest.mark.usefixtures("worth_columns")
def test_ids_and_times_are_made(engine: Engine) -> None:
    found = replies(engine, "bare", texts([{"x": 1}, {"x": 2}, {"x": 3}]))
    assert [reply["metrics"]["sx"] for reply in found] == [1, 3, 6]
    ids = [reply["id"] for reply in found]
    assert ids == sorted(set(ids))
    assert [len(each) for each in ids] == [36, 36, 36]
    assert all(reply["time"] > 1_700_000_000_000 for reply in found)


@pytest.mark.usefixtures("worth_columns")
def test_all_refused_and_none_at_all(engine: Engine) -> None:
    assert len(engine.score_each("s", BAD).accepted.refused) == len(BAD)
    assert replies(engine, "s", []) == []


def test_a_record_that_is_too_large_is_refused_alone(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "RECORD_LIMIT_BYTES", 500)
    large = json.dumps({**GOOD[0], "id": 7, "k": "x" * 600}).encode()
    for worth in (0, 10**9):
        monkeypatch.setattr(intake, "_WORTH_A_COLUMN", worth)
        scored = engine.score_each("s", [*texts(GOOD[:1]), large])
        assert list(scored.accepted.refused) == [1]
        assert "at most 500" in str(scored.accepted.refused[1])
