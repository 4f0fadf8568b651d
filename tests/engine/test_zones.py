"""A metric keeps the table of the time zone that it was registered with, also beside one with a newer table."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from railgun.catalog import computed_reading
from railgun.engine.engine import Engine
from railgun.language import zones
from railgun.language.typed import TypedExpression
from railgun.plan import hot, program
from tests.engine.conftest import Release
from tests.engine.faults import Faults

_STREAM = """
[streams.s]
time = "ts"
[streams.s.fields]
ts = "timestamp"
[[metrics]]
sql = "SELECT last(HOUR(ts IN 'Europe/Lisbon')) AS old FROM s OVER INFINITE"
[[metrics]]
sql = "SELECT count(*) AS old_noons FROM s WHERE HOUR(ts IN 'Europe/Lisbon') = 12 OVER INFINITE"
"""
_DERIVED = "DERIVE HOUR(ts IN 'Europe/Lisbon') AS {} FROM s"
_NEW = "SELECT last(HOUR(ts IN 'Europe/Lisbon')) AS new FROM s OVER INFINITE"
_NEW_NOONS = "SELECT count(*) AS new_noons FROM s WHERE HOUR(ts IN 'Europe/Lisbon') = 12 OVER INFINITE"
# Noon of UTC, in winter.
_NOON_MS = 1_736_942_400_000


def _score(engine: Engine, minutes: int) -> dict[str, Any]:
    return dict(engine.score("s", {"ts": _NOON_MS + 60_000 * minutes})["metrics"])


def _faults(folder: Path, next_release: Release) -> list[str]:
    """What is not as it has to be."""
    faults = Faults()
    with Engine(folder) as engine:
        engine.apply(_STREAM)
        faults.expect("at first", _score(engine, 0), {"old": 12, "old_noons": 1})
        next_release()
        engine.apply(_STREAM)
        engine.add_metrics("s", _NEW)
        engine.add_metrics("s", _NEW_NOONS)
        both = {"old": 12, "old_noons": 2, "new": 13, "new_noons": 0}
        faults.expect("both", _score(engine, 1), both)
        outdated = {each.name: each.outdated_zones for each in engine.metrics("s")}
        lisbon = ("Europe/Lisbon",)
        faults.expect("outdated", outdated, {"old": lisbon, "old_noons": lisbon, "new": (), "new_noons": ()})
    with Engine(folder) as engine:
        faults.expect("after a start", _score(engine, 2), both | {"old_noons": 3})
        engine.drop_metric("s", "old")
        engine.apply(_STREAM)
        engine.wait_until_warm("s")
        faults.expect("added anew", _score(engine, 3), both | {"old_noons": 4, "old": 13})
    return faults


def test_a_derived_metric_keeps_its_table(tmp_path: Path, next_release: Release) -> None:
    with Engine(tmp_path / "data") as engine:
        engine.apply(_STREAM)
        engine.add_metrics("s", _DERIVED.format("old_hour"))
        next_release()
        engine.add_metrics("s", _DERIVED.format("new_hour"))
        engine.add_metrics("s", "DERIVE new_hour - old_hour AS moved FROM s")
    with Engine(tmp_path / "data") as engine:
        found = _score(engine, 0)
        assert (found["old_hour"], found["new_hour"], found["moved"]) == (12, 13, 1)
        outdated = {each.name: each.outdated_zones for each in engine.metrics("s") if each.home is None}
        assert outdated == {"old_hour": ("Europe/Lisbon",), "new_hour": (), "moved": ()}


def test_what_is_registered_keeps_its_table(tmp_path: Path, next_release: Release) -> None:
    assert _faults(tmp_path / "data", next_release) == []


def _columns_by_name_alone(patch: pytest.MonkeyPatch) -> None:
    original = hot.text_of

    def text_of(expression: TypedExpression) -> str:
        return re.sub("@[0-9a-f]{16}", "", original(expression))

    patch.setattr(hot, "text_of", text_of)
    patch.setattr(program, "text_of", text_of)


def _tables_of_the_program(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(computed_reading, "zone_from_json", lambda name, table: zones.pinned_zone(name))


def _zones_equal_by_name(patch: pytest.MonkeyPatch) -> None:
    original = zones.zone_of

    def zone_of(name: str, offsets: Any) -> zones.Zone:
        return zones.Zone(name, "0" * 16, original(name, offsets).offsets)

    patch.setattr(zones, "zone_of", zone_of)


@pytest.mark.parametrize("plant", [_columns_by_name_alone, _tables_of_the_program, _zones_equal_by_name])
def test_a_planted_bug_is_caught(
    plant: Callable[[pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    next_release: Release,
) -> None:
    plant(monkeypatch)
    assert _faults(tmp_path / "data", next_release)
