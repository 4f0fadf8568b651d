"""Events that come again and again: each round equals the first one, but for its times and ids."""

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from railgun.catalog.definitions import parse_definitions
from railgun.engine.offline import OfflineRun
from railgun.measuring.errors import NoEventsError, NoSpanError
from railgun.measuring.repeated import RepeatedEvents, round_ms
from railgun.measuring.sample import read_sample, repeat
from railgun.wire.columns import EventColumns
from tests.oracle.compare import same_value
from tests.oracle.stream import Oracle

START_MS = 1_700_000_000_000
ROUNDS = 4

TEXT = """
[streams.payments]
time = "ts"
id = "id"
partitioners = ["card", "shop"]
lateness = "2s"

[streams.payments.fields]
id = "ID_TYPE"
ts = "timestamp"
ordered = "timestamp"
card = "string"
shop = "long"
amount = "double"
age_ms = { as = "ts - ordered" }

[[metrics]]
sql = "SELECT count(*) AS n, sum(amount) AS total, first(amount) AS first FROM payments GROUP BY card OVER SLIDING 9 SECONDS"
[[metrics]]
sql = "SELECT max(age_ms) AS oldest FROM payments GROUP BY card OVER SLIDING 30 SECONDS DELAYED BY 3 SECONDS"
[[metrics]]
sql = "SELECT count_distinct(card) AS cards FROM payments WHERE amount > 3 GROUP BY shop OVER SLIDING 20 SECONDS"
[[metrics]]
sql = "SELECT max(ordered) AS newest, first(ts) AS begun FROM payments GROUP BY card OVER SLIDING 9 SECONDS"
[[metrics]]
sql = "SELECT count(*) AS ever FROM payments GROUP BY shop OVER INFINITE"
"""  # noqa: E501
TIMES = ("ts", "ordered")


def made(n: int, seed: int = 1, of_longs: bool = False) -> list[dict[str, Any]]:
    """Events of a minute, some late, some sent twice, some without a card."""
    rng, found = random.Random(seed), list[dict[str, Any]]()
    for row in range(n):
        ts = START_MS + 60_000 * row // n - rng.choice([0, 0, 0, 900, 5_000])
        event = {
            "id": row * 7 - 50 if of_longs else f"t-é{row}",
            "ts": ts,
            "ordered": ts - rng.randrange(10_000),
            "card": rng.choice(["a", "b", "c", None]),
            "shop": rng.randrange(3),
            "amount": rng.randrange(10) / 2,
        }
        found.append(dict(rng.choice(found[-20:])) if found and rng.random() < 0.1 else event)
    return found


def repeated(path: Path, events: list[dict[str, Any]], definitions: str) -> RepeatedEvents:
    (stream,) = parse_definitions(definitions).streams.values()
    path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    return repeat(stream, read_sample(stream, [path], 60), 500)


def rows_of(events: EventColumns) -> list[tuple[str, int]]:
    return [(events.ids.string(row), int(time)) for row, time in enumerate(events.times)]


def shifted(event: Mapping[str, Any], number: int, later_ms: int, apart: int) -> dict[str, Any]:
    """The event of a round, worked out by itself."""
    key = event["id"] + number * apart if isinstance(event["id"], int) else f"{event['id']}~{number:06x}"
    return {**event, "id": key, **{name: event[name] + number * later_ms for name in TIMES}}


@pytest.mark.parametrize("of_longs", [False, True])
def test_every_round_gives_what_the_oracle_gives(of_longs: bool, tmp_path: Path) -> None:
    text = TEXT.replace("ID_TYPE", "long" if of_longs else "string")
    definitions, events = parse_definitions(text), made(400, of_longs=of_longs)
    (stream,) = definitions.streams.values()
    source = repeated(tmp_path / "e.ndjson", events, text)
    apart = max(event["id"] for event in events) - min(event["id"] for event in events) + 1 if of_longs else 0
    model = Oracle(text).streams["payments"]
    run = OfflineRun(stream, definitions.metrics)
    try:
        # Pieces that end amid a round.
        tables = [run.score(source.take(n)).to_pylist() for n in (1, 399 + 170, 1, ROUNDS * 400 - 571)]
    finally:
        run.close()
    rows = [row for table in tables for row in table]
    assert len(rows) == ROUNDS * 400
    for place, row in enumerate(rows):
        number, which = divmod(place, 400)
        reply = model.score(shifted(events[which], number, source.round_ms, apart))
        assert row["id"] == reply["id"]
        for name, value in reply["metrics"].items():
            assert same_value(value, row[name]), (place, name, value, row[name])
        assert row["late_shop"] == reply.get("late", {}).get("shop")
        assert row["duplicate_shop"] == ("shop" in reply.get("duplicate", ()))
    # Late and repeated events are there, and are that in each round; windows are the same once they are full.
    names = ("n", "total", "first", "oldest", "cards", "late_card", "late_shop", "duplicate_card")
    second, third = ([[row[name] for name in names] for row in rows[800:1200]], rows[1200:1600])
    assert [[row[name] for name in names] for row in third] == second
    assert 5 < sum(row["late_shop"] is not None for row in third) < 200
    assert [row["late_shop"] for row in rows[:400]] == [row["late_shop"] for row in third]
    assert 5 < sum(row["duplicate_shop"] for row in third) < 100


def test_a_round_lasts_from_the_first_event_to_the_last_and_one_gap() -> None:
    assert round_ms(np.array([1_000, 2_000, 3_000]), 0, "f") == 3_000
    assert round_ms(np.array([3_000, 1_000, 2_000]), 5_000, "f") == 3_000
    assert round_ms(np.array([5, 6]), 0, "f") == 2


def test_a_late_event_of_years_ago_stretches_no_round() -> None:
    assert round_ms(np.array([START_MS, START_MS + 1_000, 0, START_MS + 2_000]), 500, "f") == 2_667


@pytest.mark.parametrize(
    ("times", "error", "message"),
    [
        ([7], NoEventsError, "f: with 1 event nothing says how often"),
        (
            [START_MS] * 3,
            NoSpanError,
            "f: all 3 events are of 2023-11-14T22:13:20Z, so nothing says how often",
        ),
        ([START_MS, START_MS - 9], NoSpanError, "f: all 2 events are of"),
    ],
)
def test_times_without_a_span(times: list[int], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        round_ms(np.array(times), 0, "f")


def test_ids_differ_in_all_rounds_where_there_is_no_id_field(tmp_path: Path) -> None:
    text = TEXT.replace("ID_TYPE", "string").replace('id = "id"\n', "")
    source = repeated(tmp_path / "e.ndjson", made(50), text)
    found = rows_of(source.take(70)) + rows_of(source.take(80))
    assert [name for name, _ in found] == [str(row) for row in range(150)]
    assert [time for _, time in found[50:100]] == [time + source.round_ms for _, time in found[:50]]


def test_ids_of_all_64_bits_differ(tmp_path: Path) -> None:
    events = made(4, of_longs=True)
    for event, key in zip(events, (-(2**63), 2**63 - 1, 0, 1)):
        event["id"] = key
    source = repeated(tmp_path / "e.ndjson", events, TEXT.replace("ID_TYPE", "long"))
    assert [name for name, _ in rows_of(source.take(4))] == [str(event["id"]) for event in events]
    assert len({name for name, _ in rows_of(source.take(4000))}) == 4000


def test_events_that_are_stamped_on_arrival_come_at_the_rate(tmp_path: Path) -> None:
    text = TEXT.replace("ID_TYPE", "string").replace('time = "ts"\n', "")
    source = repeated(tmp_path / "e.ndjson", made(30), text)
    times = [time for _, time in rows_of(source.take(90))]
    assert np.diff(times).tolist() == [2] * 89
    assert source.per_s == 500


def test_several_files_are_one_sequence(tmp_path: Path) -> None:
    events, text = made(40), TEXT.replace("ID_TYPE", "string")
    (stream,) = parse_definitions(text).streams.values()
    first, second = tmp_path / "a.ndjson", tmp_path / "b.csv"
    first.write_text("".join(json.dumps(event) + "\n" for event in events[:25]), encoding="utf-8")
    lines = [",".join("" if value is None else str(value) for value in each.values()) for each in events[25:]]
    second.write_text("\n".join([",".join(events[0]), *lines]) + "\n", encoding="utf-8")
    sample = read_sample(stream, [first, second], 60)
    assert (sample.read, sample.refusals.rows, sample.is_whole) == (40, 0, True)
    whole = repeated(tmp_path / "c.ndjson", events, text).take(100)
    found = repeat(stream, sample, 500).take(100)
    assert rows_of(found) == rows_of(whole)
    for one, other in zip(found.fields, whole.fields):
        for row in range(100):
            assert (one.nulls is not None and one.nulls[row]) == (
                other.nulls is not None and other.nulls[row]
            )
            if one.heap is not None and not (one.nulls is not None and one.nulls[row]):
                assert one.string(row) == other.string(row)
