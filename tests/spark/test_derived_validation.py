"""Derived metrics are computed again from what they read: equal, and what is wrong in one reply is found."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from railgun.spark.validation.validate_run import validate_run
from tests.engine.player import EnginePlayer
from tests.spark.runs import add_to_replies, events, run
from tests.spark.runs import definitions as run_definitions
from tests.spark.test_service_validation import DEFINITIONS, KEPT, START_MS, Feed, of_folder, written

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

DERIVED = """
[[metrics]]
sql = '''DERIVE m0_0 + 1 AS more, amount > 2e0 * m0_1 AS unusual, m1_1 - 1 AS fewer, price - m2_1 AS dearer,
         COALESCE(note, 'none') AS said, fewer * 1.5 AS scaled, m2_1 < amount AS unsaid FROM s'''
"""


def test_a_run_is_equal_but_for_what_is_wrong(spark: SparkSession, tmp_path: Path) -> None:
    files = run(tmp_path, run_definitions("rewrite", (0, 1, 2), few=True) + DERIVED, events(3, 200))
    report = validate_run(spark, files)
    assert report.mismatches == 0, report.as_text()
    checks = {check.name: check for check in report.checks}
    for name in ("more", "unusual", "fewer", "dearer", "said", "scaled"):
        assert checks[name].compared == 200, report.as_text()
    # Spark compares a decimal with a double in doubles.
    assert "rounding the decimal" in (checks["unsaid"].not_checked or "")
    values = pq.read_table(files.out).column("more").to_pylist()
    first, second = [row for row, value in enumerate(values) if value is not None][20:22]
    add_to_replies(files, "more", {first: 1, second: -1})
    report = validate_run(spark, files)
    found = {check.name: [each.row for each in check.examples] for check in report.checks if check.mismatches}
    assert found == {"more": [first, second]}, report.as_text()


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A data folder whose stream had derived metrics that came and went, and its replies."""
    folder, feed = tmp_path_factory.mktemp("derived") / "data", Feed(2)
    player, replies = EnginePlayer(folder, "s", KEPT), list[dict[str, Any]]()

    try:
        player.apply(DEFINITIONS)
        player.add_metrics(
            "DERIVE whole - n AS others, price - latest AS nothing, amount / total AS share FROM s"
        )
        replies += feed.play(player, 30)
        player.add_metrics("SELECT count(*) AS seen FROM s GROUP BY card OVER INFINITE", warm=False)
        player.add_metrics("DERIVE total / seen AS each_one, COALESCE(others, seen) AS either FROM s")
        replies += feed.play(player, 10)
        player.warm("seen")
        player.drop_metric("nothing")
        replies += feed.play(player, 20)
        player.add_field("shop", "string")
        player.add_metrics("DERIVE COALESCE(shop, 'none') AS nothing FROM s")
        replies += feed.play(player, 10)
    finally:
        player.engine.close(checkpoint=False)
    return folder, replies


def test_a_service_is_equal(
    spark: SparkSession, tmp_path: Path, lived: tuple[Path, list[dict[str, Any]]]
) -> None:
    folder, replies = lived
    assert any("each_one" in each.get("warming", ()) for each in replies)
    report = of_folder(spark, folder, written(tmp_path, replies))
    assert report.mismatches == 0, report.as_text()
    compared = {check.name: check.compared for check in report.checks}
    names = ["others", "share", "each_one", "either"]
    assert all(compared[name] > 20 for name in names), report.as_text()
    assert len([name for name in compared if name.startswith("nothing (added at")]) == 2


def test_what_is_wrong_in_replies_of_a_service_is_found(
    spark: SparkSession, tmp_path: Path, lived: tuple[Path, list[dict[str, Any]]]
) -> None:
    folder, replies = lived
    wrong: list[dict[str, Any]] = json.loads(json.dumps(replies))
    ids = [each["id"] for each in wrong]
    once = [place for place, id_ in enumerate(ids) if ids.count(id_) == 1 and "late" not in wrong[place]]

    def first(after: int, name: str) -> dict[str, Any]:
        """The first reply of an id that came once, from a place on, in which a value is not null."""
        return next(
            wrong[place] for place in once if place >= after and wrong[place]["metrics"].get(name) is not None
        )

    first(3, "others")["metrics"]["others"] += 1
    del first(10, "share")["metrics"]["share"]
    first(20, "share")["metrics"]["share"] = None
    told = next(
        each for each in wrong if "each_one" in each.get("warming", ()) and ids.count(each["id"]) == 1
    )
    told["warming"].remove("each_one")
    later = first(45, "either")
    later.setdefault("partial", {})["either"] = START_MS
    dropped = next(wrong[place] for place in once if 42 <= place < 58)
    dropped["metrics"]["nothing"] = None
    report = of_folder(spark, folder, written(tmp_path, wrong))
    found = {check.name.partition(" ")[0]: check.mismatches for check in report.checks if check.mismatches}
    assert found == {"others": 1, "share": 2, "each_one": 1, "either": 1, "nothing": 1}, report.as_text()
