"""Nodes with data folders of their own, and a copy of each task, get a stream's history, and older history, by sharing
what is built. A node that comes later makes its copies of that.
"""

import errno
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from railgun.catalog.definitions import parse_definitions
from railgun.cluster.copies import CopyName
from railgun.registry import evolution
from railgun.spark.backfill.cluster import BackfillOfCluster
from railgun.spark.backfill.source import HistorySource
from railgun.spark.backfill.target import BackfillRequest
from tests.broker.own_topics import own_prefix
from tests.engine import test_history
from tests.engine.deepening.deepened import build_deepening
from tests.engine.deepening.test_deepening import accepted_rows, history_rows, live_rows, through_the_log
from tests.engine.histories import build_history
from tests.engine.test_history import EVENTS, definitions, rows
from tests.spark.test_deepening_cluster import BEGIN, NOW, SETTINGS, scored, target, wanted
from tests.unit.cluster_player import ClusterPlayer
from tests.unit.equal_copies import check_equal
from tests.unit.fixed_plan import FixedPlan
from tests.unit.local_units import LocalUnit, awaited, quick_settings

NEVER = replace(SETTINGS, checkpoint_interval_s=1e9, replay_s=1e9)


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Their data folders, of which `backfill` alone is shared, from another file system."""
    shared, found = tmp_path / "shared", [tmp_path / name for name in ("first", "second", "third")]
    shared.mkdir()
    for node in found:
        node.mkdir()
        (node / "backfill").symlink_to(shared)
    rename, link = Path.rename, Path.hardlink_to

    def is_shared(path: Path) -> bool:
        return path.resolve().is_relative_to(shared)

    def renamed(self: Path, to: Path) -> Path:
        if is_shared(self) != is_shared(to):
            raise OSError(errno.EXDEV, "it is in another file system")
        return rename(self, to)

    def linked(self: Path, to: Path) -> None:
        if is_shared(self) != is_shared(Path(to)):
            raise OSError(errno.EXDEV, "it is in another file system")
        link(self, to)

    monkeypatch.setattr(Path, "rename", renamed)
    monkeypatch.setattr(Path, "hardlink_to", linked)
    return found


@contextmanager
def running(kafka: str, prefix: str, nodes: list[Path]) -> Iterator[list[LocalUnit]]:
    """A unit of each, with a copy of each task. The first one answers."""
    order = [CopyName(node.name, 0) for node in nodes]
    with ExitStack() as stack:
        units = []
        for node in nodes:
            plan = FixedPlan(order)
            units.append(LocalUnit(kafka, prefix, node, 0, 1, SETTINGS, node=node.name, assignments=plan))
            stack.callback(units[-1].stop)
        awaited(lambda: all(unit.loop.is_ready for unit in units))
        yield units


def held(units: list[LocalUnit]) -> list[list[str]]:
    """The history of each task; none for one that is being replaced at this moment."""
    tasks = [[host._task for host in unit.loop.hosts.values()] for unit in units]
    return [["" if task is None else task.history for task in of_unit] for of_unit in tasks]


@pytest.mark.timeout(600)
def test_older_history(kafka: str, tmp_path: Path, nodes: list[Path]) -> None:
    prefix, made, two = own_prefix("n"), target, nodes[:2]
    own, after = live_rows(BEGIN, NOW), live_rows(NOW, NOW + 200)
    job, player = made(kafka, prefix, nodes[0]), ClusterPlayer(kafka, prefix)
    try:
        player.registry.change(lambda known: evolution.missing(known, parse_definitions(definitions())))
        with running(kafka, prefix, two) as units:
            scored(player, own)
            plan = job.plan()
            build_deepening(job.ready, plan, history_rows(), SETTINGS)
            job.install()
            new = scored(player, after.slice(0, 100))
            assert held(units) == [[plan.history] * 3] * 2
        with running(kafka, prefix, two):
            new += scored(player, after.slice(100))
            places = [place for node in two for place in (node / "tasks").glob("*/*/*")]
            assert len(places) == 6
            awaited(lambda: all((place / "moved_to").is_file() for place in places))
        assert sorted(path.name for path in (tmp_path / "shared" / "s").iterdir()) == [
            "installed",
            "installed.json",
        ]
        with running(kafka, prefix, nodes) as units:
            check_equal(units, 3)
        # The next one takes the place of the first, which is kept.
        with running(kafka, prefix, two) as units:
            again = job.plan()
            build_deepening(job.ready, again, history_rows(), SETTINGS)
            job.install()
            assert held(units) == [[again.history] * 3] * 2
        kept = tmp_path / "shared" / "s" / "installed"
        assert {path.name for path in kept.iterdir()} == {plan.history, again.history}
        shutil.rmtree(nodes[2] / "tasks")
        with running(kafka, prefix, nodes) as units:
            check_equal(units, 3)
    finally:
        player.close()
    assert new == wanted(tmp_path / "new", through_the_log(history_rows(), accepted_rows(own)), after)


@pytest.mark.timeout(600)
def test_history_before_the_first_event(kafka: str, tmp_path: Path, nodes: list[Path]) -> None:
    prefix, two = own_prefix("n"), nodes[:2]
    source = HistorySource.of(["h.parquet"])
    request = BackfillRequest(
        nodes[0], parse_definitions(definitions()), source, {}, test_history.CUT_MS, settings=SETTINGS
    )
    job = BackfillOfCluster(request, quick_settings(kafka), prefix)
    plan = job.plan()
    player = ClusterPlayer(kafka, prefix)
    try:
        with running(kafka, prefix, two) as units:
            build_history(job.ready, plan, test_history.history_rows(), SETTINGS)
            job.install()
            new = scored(player, rows(EVENTS, 100))
            awaited(lambda: held(units) == [[plan.history] * 3] * 2)
        with running(kafka, prefix, two):
            new += scored(player, rows(EVENTS + 100, 50))
        with running(kafka, prefix, nodes) as units:
            check_equal(units, 3)
    finally:
        player.close()
    order = test_history.history_rows()
    assert new == wanted(
        tmp_path / "log", order, pa.concat_tables([rows(EVENTS, 100), rows(EVENTS + 100, 50)])
    )
