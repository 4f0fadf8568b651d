"""Computed fields keep the tables of time zones of their own record, and route as that says, whatever comes later."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from railgun.catalog import computed_reading, stream_reading
from railgun.catalog.model import StreamDefinition
from railgun.engine import live_stream
from railgun.engine.engine import Engine
from railgun.engine.errors import FolderError
from railgun.ingest.routing import Router
from railgun.language import zones
from railgun.registry.errors import DefinitionsError
from tests.engine.conftest import Release
from tests.engine.faults import Faults

_STREAM = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["hour"]
partitions = 24
[streams.s.fields]
id = "string"
ts = "timestamp"
hour = { type = "long", as = "HOUR(ts IN 'Europe/Lisbon')" }
half = { as = "CASE WHEN hour < 13 THEN 'am' ELSE 'pm' END" }
[[metrics]]
sql = "SELECT count(*) AS n, max(hour) AS latest FROM s GROUP BY hour OVER INFINITE"
[[metrics]]
sql = "SELECT count(*) AS of_half FROM s GROUP BY hour, half OVER INFINITE"
"""
# Noon of UTC and of Lisbon, in winter.
_NOON_MS = 1_736_942_400_000


def _score(engine: Engine, name: str) -> dict[str, Any]:
    return engine.score("s", {"id": name, "ts": _NOON_MS})


def _faults(folder: Path, next_release: Release) -> list[str]:
    """What is not as it has to be."""
    faults = Faults()
    with Engine(folder) as engine:
        engine.apply(_STREAM)
        faults.expect("at first", _score(engine, "a")["metrics"], {"n": 1, "latest": 12, "of_half": 1})
        next_release()
        engine.apply(_STREAM)
        engine.add_field("s", "later", {"as": "HOUR(ts IN 'Europe/Lisbon')"})
        engine.add_metrics("s", "SELECT max(later) AS moved FROM s GROUP BY hour OVER INFINITE")
        changed = {"n": 2, "latest": 12, "of_half": 2, "moved": 13}
        faults.expect("after a change", _score(engine, "b")["metrics"], changed)
        faults.expect("sent again", _score(engine, "a").get("duplicate"), ["hour"])
        outdated = {each.name for each in engine.metrics("s") if each.outdated_zones}
        faults.expect("outdated", outdated, {"n", "latest", "of_half", "moved"})
    with Engine(folder) as engine:
        faults.expect("after a start", _score(engine, "a").get("duplicate"), ["hour"])
        faults.expect("then", _score(engine, "c")["metrics"], {**changed, "n": 3, "of_half": 3})
        (found,) = engine.values("s", [{"hour": 12, "half": "am"}])
        faults.expect("asked", found["metrics"]["of_half"], 3)
        # What is dropped and added again has the tables of today.
        engine.drop_metric("s", "moved")
        engine.drop_metric("s", "of_half")
        engine.drop_field("s", "half")
        engine.drop_field("s", "later")
        engine.add_field("s", "half", {"as": "CAST(HOUR(ts IN 'Europe/Lisbon') AS string)"})
        engine.add_metrics("s", "SELECT count(*) AS now FROM s GROUP BY hour, half OVER INFINITE")
        (found,) = engine.values("s", [{"hour": 12, "half": "13"}])
        faults.expect("anew", found["metrics"]["now"], 3)
    return faults


def test_a_computed_field_keeps_its_tables(tmp_path: Path, next_release: Release) -> None:
    assert _faults(tmp_path / "data", next_release) == []


def _tables_of_the_reader(patch: pytest.MonkeyPatch) -> None:
    """A program that reads a stream's record takes its own tables."""
    patch.setattr(computed_reading, "zone_from_json", lambda name, table: zones.pinned_zone(name))


def _tables_of_the_newest_version(patch: pytest.MonkeyPatch) -> None:
    """The next version of a stream has other tables than the one by which events were recorded."""
    patch.setattr(stream_reading, "kept_zones", lambda known: lambda field: zones.pinned_zone)


@pytest.mark.parametrize("plant", [_tables_of_the_reader, _tables_of_the_newest_version])
def test_a_planted_bug_is_caught(
    plant: Callable[[pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    next_release: Release,
) -> None:
    """By the catalogue: nothing changes an expression or its tables."""
    plant(monkeypatch)
    with pytest.raises(
        (DefinitionsError, FolderError), match="the expression of the field hour cannot be changed"
    ):
        _faults(tmp_path / "data", next_release)


def test_a_door_with_tables_of_its_own_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, next_release: Release
) -> None:
    """Planted: routing computes by the tables of the program, and not by those of the stream's record."""

    def router(stream: StreamDefinition) -> Router:
        body = stream_reading.definition_to_json(stream)
        return Router(stream_reading.stream_from_json(body))

    monkeypatch.setattr(live_stream, "Router", router)
    assert any(fault.startswith("after a start") for fault in _faults(tmp_path / "data", next_release))


def _made_anew(folder: Path) -> dict[str, int]:
    """How many events each half saw, after the stream was dropped and made with the other half of the day."""
    with Engine(folder) as engine:
        engine.apply(_STREAM)
        _score(engine, "a")
        engine.drop_stream("s")
        engine.apply(_STREAM.replace("HOUR(ts IN 'Europe/Lisbon')", "MINUTE(ts IN 'Europe/Lisbon') + 23"))
        _score(engine, "a")
        (found,) = engine.values("s", [{"hour": 23}], ["n"])
        return {"n": found["metrics"]["n"]}


def test_a_stream_made_anew_routes_by_its_own_definition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _made_anew(tmp_path / "right") == {"n": 1}
    first: dict[str, Router] = {}
    monkeypatch.setattr(live_stream, "Router", lambda stream: first.setdefault(stream.name, Router(stream)))
    assert _made_anew(tmp_path / "planted") != {"n": 1}
