"""Computed partitioners: one event by itself, many by columns, and the tasks and keys that both give."""

import json

import pytest

from railgun.catalog.stream_reading import stream_from_json
from railgun.ingest.accepted import AcceptedBatch
from railgun.ingest.ids import IdMaker
from railgun.ingest.intake import Intake
from railgun.ingest.routing import Router
from railgun.wire.columns import EventColumns
from railgun.wire.partition import partition_key, partition_of
from railgun.wire.validator import Roles

STREAM = stream_from_json(
    {
        "name": "s",
        "time": "ts",
        "partitioners": ["*", "bin", "cents", "alias", "fixed"],
        "partitions": 7,
        "fields": {
            "ts": "timestamp",
            "card": "string",
            "amount": "decimal(9,2)",
            "x": "double",
            "ok": "boolean",
            "bin": {"as": "UPPER(SUBSTR(card, 1, 2)) || CASE WHEN ok THEN 'y' ELSE '' END"},
            "cents": {"as": "CAST(amount * 100 AS long) + CAST(x AS long)"},
            "alias": {"as": "card"},
            "fixed": {"as": "'always'"},
            "unused": {"as": "ts"},
        },
    }
)


def events(n: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = [
        {
            "ts": i,
            "card": None if i % 7 == 0 else f"ü{i % 5}{'x' * (i % 3)}",
            "amount": f"{i % 9}.25",
            "x": None if i % 11 == 0 else 1.5 * (i % 4),
            "ok": (None, True, False)[i % 3],
        }
        for i in range(n)
    ]
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def expected(event: dict[str, object]) -> list[str | int | None]:
    card, amount, x = event.get("card"), event["amount"], event.get("x")
    assert x is None or isinstance(x, float)
    start = None if card is None else str(card)[:2].upper() + ("y" if event.get("ok") else "")
    cents = None if x is None else round(float(str(amount)) * 100) + int(x)
    return [None, start, cents, None if card is None else str(card), "always"]


def taken(rows: list[dict[str, object]]) -> AcceptedBatch:
    schema = STREAM.incoming(1)
    roles = Roles(schema, STREAM.time, STREAM.id, STREAM.recorded_partitioners)
    intake = Intake(STREAM, roles, Router(STREAM))
    return intake.take([json.dumps(row).encode() for row in rows], IdMaker(), 1 << 40, 0)


@pytest.mark.parametrize("count", [1, 3, 120, 9_000])
def test_where_events_go(count: int) -> None:
    """Few events are computed one by one, many by columns, in blocks."""
    rows = events(count)
    batch = taken(rows)
    assert isinstance(batch.events, EventColumns) == (count > 119)
    wanted = [expected(row) for row in rows]
    for home, name in enumerate(STREAM.partitioners[1:], 1):
        places = [
            None if each[home] is None else partition_of(partition_key(each[home]), 7)  # type: ignore[arg-type]
            for each in wanted
        ]
        found: dict[int, list[int]] = {}
        for share in batch.shares[home]:
            assert share.partitioner == name
            found[share.partition] = list(range(count)) if share.rows is None else share.rows.tolist()
            keys = [wanted[row][home] for row in found[share.partition]]
            assert batch.keys(home, share) == [partition_key(each) for each in keys]  # type: ignore[arg-type]
        assert found == {
            place: [row for row, other in enumerate(places) if other == place]
            for place in sorted({each for each in places if each is not None})
        }
    assert batch.keys(0, batch.shares[0][0]) is None
