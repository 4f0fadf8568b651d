"""A condition on events of a topic: types come before it, null ids and times after it; by columns and one by one."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from railgun.catalog.stream_reading import stream_from_json
from railgun.ingest.accepted import AcceptedBatch
from railgun.ingest.ids import IdMaker
from railgun.ingest.intake import EventText, Intake, ParsedEvent
from railgun.ingest.routing import Router
from railgun.wire.columns import EventColumns
from railgun.wire.validator import Roles

STREAM = stream_from_json(
    {
        "name": "s",
        "time": "ts",
        "id": "tx",
        "partitioners": ["*"],
        "fields": {"ts": "timestamp", "tx": "string", "op": "string", "n": "long", "ok": "boolean"},
        "input": {"where": "op IN ('c', 'r') AND n + 1 > 0"},
    }
)
NOW_MS = 1_700_000_000_000
TAKEN: dict[str, Any] = {"ts": NOW_MS, "tx": "a", "op": "c", "n": 5}
CASES: list[tuple[dict[str, Any], str]] = [
    (TAKEN, "taken"),
    ({**TAKEN, "op": "d"}, "left out"),
    ({**TAKEN, "op": None}, "left out"),
    ({**TAKEN, "n": None}, "left out"),
    ({**TAKEN, "n": -1}, "left out"),
    # It has no number, so the condition is null.
    ({**TAKEN, "n": 2**63 - 1}, "left out"),
    ({**TAKEN, "op": "d", "n": "much"}, "refused"),
    ({**TAKEN, "op": "d", "ok": 7}, "refused"),
    ({**TAKEN, "tx": None}, "refused"),
    ({**TAKEN, "tx": None, "op": "d"}, "left out"),
    ({**TAKEN, "ts": None}, "refused"),
    ({**TAKEN, "ts": None, "op": "d"}, "left out"),
    ({**TAKEN, "ts": 2 * NOW_MS}, "refused"),
    ({**TAKEN, "ts": 2 * NOW_MS, "op": "d"}, "left out"),
    ({**TAKEN, "ts": None, "tx": None, "n": "x"}, "refused"),
]


def outcomes(texts: Sequence[EventText], *, selects: bool = True) -> tuple[list[str], AcceptedBatch]:
    roles = Roles(STREAM.incoming(1), STREAM.time, STREAM.id, STREAM.recorded_partitioners)
    where = STREAM.input.where
    assert where is not None
    intake = Intake(STREAM, roles, Router(STREAM), where if selects else None)
    batch = intake.take(texts, IdMaker(), NOW_MS, NOW_MS)
    found = ["left out"] * len(texts)
    rows = range(len(texts)) if batch.rows is None else batch.rows.tolist()
    assert len(rows) == len(batch) == len(batch.times) == len(batch.ids)
    for row in rows:
        found[row] = "taken"
    for row in batch.refused:
        assert found[row] == "left out"
        found[row] = "refused"
    return found, batch


@pytest.mark.parametrize("count", [1, 400])
def test_the_order_at_the_door(count: int) -> None:
    texts = [json.dumps(event).encode() for event, _ in CASES] * count
    found, batch = outcomes(texts)
    assert found == [outcome for _, outcome in CASES] * count
    assert batch.ids == ["a"] * count
    assert len(batch.records()) == count


@pytest.mark.parametrize("count", [1, 400])
def test_the_order_at_the_door_by_columns(count: int) -> None:
    """Many are checked by columns if each field has values of one kind in all of them."""
    at, ahead, no_time = "2023-11-14T22:13:20Z", "2093-11-14T22:13:20Z", "yesterday"
    cases = [
        ({**event, "ts": ahead if event["ts"] == 2 * NOW_MS else event["ts"] and at}, outcome)
        for event, outcome in CASES
        if not isinstance(event["n"], str) and event.get("ok") is None
    ]
    cases += [({**TAKEN, "ts": no_time}, "refused"), ({**TAKEN, "ts": no_time, "op": "d"}, "refused")]
    texts = [json.dumps(event).encode() for event, _ in cases] * count
    found, batch = outcomes(texts)
    assert found == [outcome for _, outcome in cases] * count
    assert isinstance(batch.events, EventColumns) == (count > 1)
    assert len(batch.records()) == count


def test_events_that_are_read_already() -> None:
    found, _ = outcomes([ParsedEvent(event, 0) for event, _ in CASES])
    assert found == [outcome for _, outcome in CASES]


@pytest.mark.parametrize("count", [1, 400])
def test_texts_that_are_no_json_are_refused(count: int) -> None:
    found, _ = outcomes([b"{", json.dumps(TAKEN).encode(), b"[1]"] * count)
    assert found == ["refused", "taken", "refused"] * count


def test_nothing_is_left_out_elsewhere() -> None:
    found, batch = outcomes([json.dumps({**TAKEN, "op": "d"}).encode()] * 200, selects=False)
    assert found == ["taken"] * 200
    assert batch.rows is None
