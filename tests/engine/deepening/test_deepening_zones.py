"""A deepening is built with the time zones' tables that the metrics have, whatever the release that builds it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from railgun.catalog import computed_reading
from railgun.history.plan_file import deepening_folder, read_plan, write_plan
from railgun.language import zones
from tests.engine.conftest import Release
from tests.engine.deepening.deepened import build_deepening
from tests.engine.deepening.test_deepening import (
    BEGIN,
    CUT_MS,
    accepted_rows,
    history_rows,
    live_rows,
    reference,
    scored,
    through_the_log,
)
from tests.engine.test_history import SETTINGS, STREAM, engine, rows

# It is ten in the evening in Lisbon.
_DEFINITIONS = (
    STREAM.format(dedup=10_000)
    + """
[[metrics]]
sql = '''SELECT count(*) FILTER (WHERE HOUR(ts IN 'Europe/Lisbon') = 22) AS at_ten, count(*) AS n,
  first(HOUR(ts IN 'Europe/Lisbon')) AS first_hour FROM s GROUP BY card OVER INFINITE'''
[[metrics]]
sql = '''SELECT last(HOUR(ts IN 'Europe/Lisbon')) AS hour_before FROM s GROUP BY shop
  OVER SLIDING 10 MINUTES EXCLUDE CURRENT'''
[[metrics]]
sql = "DERIVE HOUR(ts IN 'Europe/Lisbon') - first_hour AS hours, at_ten * 1e0 / n AS share FROM s"
"""
)
_NOW = 1_000


def _faults(folder: Path, next_release: Release) -> list[str]:
    """The columns of replies that are not as if the history had come through the log. By the next release it is eleven
    in Lisbon: it builds the tasks, in a process of its own, which knows the plan's file alone.
    """
    own, faults = live_rows(BEGIN, _NOW), set[str]()
    order = through_the_log(history_rows(), accepted_rows(own))
    with reference(folder / "log", order, _DEFINITIONS) as wanted, engine(folder / "live") as opened:
        opened.apply(_DEFINITIONS)
        scored(opened, own)
        opened.begin_deepening("s", CUT_MS)
        next_release()
        place = deepening_folder(folder / "live", "s")
        plan = read_plan(place)
        assert plan is not None
        build_deepening(place / "tasks", plan, history_rows(), SETTINGS)
        opened.deepen("s")
        for first in (_NOW, _NOW + 100):
            expected, found = (scored(each, rows(first, 100)) for each in (wanted, opened))
            assert expected.column("at_ten").equals(expected.column("n"))
            faults |= {
                name for name in expected.column_names if not found.column(name).equals(expected.column(name))
            }
    return sorted(faults)


def test_the_plan_brings_the_tables(tmp_path: Path, next_release: Release) -> None:
    assert _faults(tmp_path, next_release) == []


def test_a_plan_that_is_written_by_another_release_keeps_them(tmp_path: Path, next_release: Release) -> None:
    """Whoever reads a plan, and writes it again, has the tables of whom it came from."""
    with engine(tmp_path / "live") as opened:
        opened.apply(_DEFINITIONS)
        scored(opened, rows(BEGIN, 50))
        plan = opened.begin_deepening("s")
    next_release()
    place = deepening_folder(tmp_path / "live", "s")
    read = read_plan(place)
    assert read == plan
    (of_hours,) = {zone for add in read.metrics for zone in add.metric.resolved.zones}
    assert of_hours.name == "Europe/Lisbon"
    assert of_hours != zones.pinned_zone("Europe/Lisbon")
    write_plan(tmp_path, read)
    assert read_plan(tmp_path) is not None
    assert (tmp_path / "deepening.json").read_bytes() == (place / "deepening.json").read_bytes()


def _tables_of_the_builder(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(computed_reading, "zone_from_json", lambda name, table: zones.pinned_zone(name))


@pytest.mark.parametrize("plant", [_tables_of_the_builder])
def test_a_planted_bug_is_caught(
    plant: Callable[[pytest.MonkeyPatch], None],
    tmp_path: Path,
    next_release: Release,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    assert _faults(tmp_path, next_release)
