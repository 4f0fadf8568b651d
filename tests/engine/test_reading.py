"""Readings of an engine's tasks: about once a second, by the thread that runs them."""

import time
from pathlib import Path

from railgun.engine.engine import Engine
from railgun.telemetry.reading import EngineReading

DEFINITIONS = """
[streams.payments]
time = "ts"
id = "tx_id"
partitioners = ["card", "merchant"]
[streams.payments.fields]
tx_id = "string"
ts = "timestamp"
card = "string"
merchant = "string"
amount = "double"
[[metrics]]
sql = "SELECT count(*) AS n, sum(amount) AS s FROM payments GROUP BY card OVER SLIDING 1 HOUR"
"""


def _event(place: int) -> dict[str, object]:
    return {
        "tx_id": f"t{place}",
        "ts": 1_700_000_000_000 + place,
        "card": f"c{place % 3}",
        "merchant": None,
        "amount": 1.0,
    }


def _reading_where(engine: Engine, position: int) -> EngineReading:
    """The first reading in which the first task has come this far."""
    end_s = time.monotonic() + 30
    while time.monotonic() < end_s:
        reading = engine.reading
        if reading is not None and reading.tasks and reading.tasks[0].position >= position:
            return reading
        time.sleep(0.02)
    raise AssertionError(f"no reading at {position}: {engine.reading}")


def test_a_reading_follows_the_tasks(tmp_path: Path) -> None:
    with Engine(tmp_path / "data", durability="os") as engine:
        engine.apply(DEFINITIONS)
        control_records = _reading_where(engine, 1).tasks[0].position
        engine.score_many("payments", [_event(place) for place in range(10)])
        reading = _reading_where(engine, control_records + 10)
        card, merchant = reading.tasks
        assert (card.stream, card.partitioner, card.partition) == ("payments", "card", 0)
        assert (merchant.partitioner, merchant.position) == ("merchant", control_records)
        assert (card.clock_s, merchant.clock_s) == (1_700_000_000.009, 0.0)
        assert (card.open_rows, card.rows, card.metrics, card.metrics_warming, card.fill_ratio) == (
            10,
            3,
            2,
            0,
            1.0,
        )
        assert card.rows_bytes > 0
        assert card.unreadable_records == card.chunks == 0
        assert reading.at_s <= time.monotonic()


def test_a_checkpoint_shows(tmp_path: Path) -> None:
    with Engine(tmp_path / "data", durability="os") as engine:
        engine.apply(DEFINITIONS)
        engine.score_many("payments", [_event(place) for place in range(50)])
        reached = _reading_where(engine, 50).tasks[0].position
    with Engine(tmp_path / "data", durability="os") as engine:
        card = _reading_where(engine, reached).tasks[0]
        assert card.checkpoint == card.position == reached
        # A metric that fills makes a checkpoint due.
        engine.add_metrics(
            "payments", "SELECT max(amount) AS m FROM payments GROUP BY card OVER SLIDING 1 HOUR"
        )
        card = _reading_where(engine, reached + 2).tasks[0]
        assert card.checkpoints >= 1
        assert card.checkpoint_s > 0
        assert card.state_written_bytes > 0
        assert card.metrics == 3
