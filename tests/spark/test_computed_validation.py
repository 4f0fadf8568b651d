"""Validation of streams with computed fields: Spark computes them by its own expressions, and routes by them."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from railgun.spark.validation.translate import InexpressibleError
from railgun.spark.validation.validate_run import validate_run
from tests.engine.player import EnginePlayer
from tests.spark.runs import START_MS, add_to_replies, run
from tests.spark.test_service_validation import KEPT, Feed, of_folder, written
from tests.spark.test_validation_of_history import bootstrapped, check_complete, definitions, sole

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

DEFINITIONS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["bin", "minute"]
partitions = 3
[streams.s.fields]
id = "string"
ts = "timestamp"
card = "string"
amount = "long"
bin = { as = "SUBSTR(card, 1, 3)" }
minute = { type = "long", as = "MINUTE(ts IN 'Asia/Kolkata') % 5" }
odd = { as = "amount % 2 = 1" }
alias = { as = "card" }
[[metrics]]
sql = "SELECT count(*) AS n, sum(amount) AS total FROM s GROUP BY bin OVER SLIDING 60 SECONDS"
[[metrics]]
sql = "SELECT count(*) FILTER (WHERE odd) AS odds FROM s GROUP BY minute, odd OVER INFINITE"
[[metrics]]
sql = "SELECT count_distinct(bin) AS bins, max(bin) AS last_bin FROM s GROUP BY minute, alias, card OVER INFINITE"
[[metrics]]
sql = "DERIVE bin || CAST(n AS string) AS shown FROM s"
"""


def test_equal_and_a_planted_difference_is_found(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        {
            "id": f"e{n}",
            "ts": START_MS + n * 7_000,
            "card": None if n % 11 == 0 else f"{n % 4}{n % 3}xy{n % 2}",
            "amount": n,
        }
        for n in range(120)
    ]
    files = run(tmp_path, DEFINITIONS, rows)
    report = validate_run(spark, files)
    assert report.mismatches == 0, report.as_text()
    assert report.events == 120
    assert not [check for check in report.checks if check.not_checked or not check.compared]
    add_to_replies(files, "odds", {7: 1})
    found = validate_run(spark, files)
    assert {check.name for check in found.checks if check.mismatches} == {"odds"}


def test_a_partitioner_that_spark_cannot_compute_is_named(spark: SparkSession, tmp_path: Path) -> None:
    definitions = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["side"]
[streams.s.fields]
id = "string"
ts = "timestamp"
price = "decimal(9,2)"
weight = "double"
side = { as = "CASE WHEN price < weight THEN 'below' ELSE 'above' END" }
[[metrics]]
sql = "SELECT count(*) AS n FROM s GROUP BY side OVER INFINITE"
"""
    rows = [{"id": f"e{n}", "ts": START_MS + n, "price": f"{n}.25", "weight": 3.5} for n in range(9)]
    said = (
        r"^Spark cannot compute the partitioner side \(CASE WHEN price < weight .* END\), so its stream cannot be "
        "validated: Spark compares a decimal with a double by rounding"
    )
    with pytest.raises(InexpressibleError, match=said):
        validate_run(spark, run(tmp_path, definitions, rows))


LIFE = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["bin", "*"]
partitions = 3
lateness = "5s"
retention = "20s"
dedup_events = 30
[streams.s.fields]
id = "string"
ts = "timestamp"
card = "string"
amount = "double"
price = "decimal(9,2)"
n = "long"
bin = { as = "CASE WHEN card < 'c' THEN 'low' ELSE card END" }
cheap = { as = "ROUND(price) % 3 = 0" }
[[metrics]]
sql = "SELECT count(*) AS seen, sum(amount) AS total FROM s GROUP BY bin OVER SLIDING 30 SECONDS"
[[metrics]]
sql = "SELECT count(*) AS of_both FROM s WHERE cheap GROUP BY cheap, bin OVER SLIDING 30 SECONDS EXCLUDE CURRENT"
"""
BY_PART = "SELECT count(*) AS parts, max(part) AS last_part FROM s GROUP BY part OVER SLIDING 1 MINUTE"


def test_a_service_whose_computed_fields_come_and_go(spark: SparkSession, tmp_path: Path) -> None:
    """Grouped by from the beginning; added later, dropped and made anew as another one; and wrong values are found."""
    folder, feed = tmp_path / "data", Feed(3)
    player, replies = EnginePlayer(folder, "s", KEPT), list[dict[str, Any]]()
    try:
        player.apply(LIFE)
        replies += feed.play(player, 50)
        player.add_field("part", {"as": "SUBSTR(id, 2, 1)"})
        player.add_metrics(BY_PART)
        replies += feed.play(player, 30)
        player.drop_metric("parts")
        player.drop_metric("last_part")
        player.drop_field("part")
        player.add_field("shop", "string")
        replies += feed.play(player, 10)
        anew = len(replies)
        player.add_field("part", {"as": "CAST(price AS long) % 4"})
        player.add_metrics(BY_PART)
        replies += feed.play(player, 40)
    finally:
        player.engine.close(checkpoint=False)
    report = of_folder(spark, folder, written(tmp_path, replies))
    assert report.mismatches == 0, report.as_text()
    assert not [check for check in report.checks if check.not_checked]
    ids = Counter(each["id"] for each in replies)
    early = next(each for each in replies[60:80] if ids[each["id"]] == 1)
    late = next(each for each in replies[anew + 5 :] if ids[each["id"]] == 1)
    early["metrics"]["parts"] += 1
    late["metrics"]["last_part"] += 1
    late["metrics"]["of_both"] += 1
    report = of_folder(spark, folder, written(tmp_path, replies))
    found = {check.name: check.mismatches for check in report.checks if check.mismatches}
    assert found == {"parts": 1, "last_part": 1, "of_both": 1}, report.as_text()


def test_history_of_a_stream_with_a_computed_partitioner(spark: SparkSession, tmp_path: Path) -> None:
    text = definitions(metrics=HISTORIC).replace(
        'partitioners = ["card", "*"]', 'partitioners = ["bin", "*"]'
    )
    stream = bootstrapped(spark, tmp_path, 8, text.replace('price = "decimal(9,2)"\n', PLACES))
    report = stream.validated(spark)
    assert report.mismatches == 0, report.as_text()
    check_complete(report, stream)
    wrong = json.loads(json.dumps(stream.replies))
    behind = sole(wrong, "seen")[-1]
    behind["metrics"]["seen"] += 1
    found = {check.name: check.mismatches for check in stream.validated(spark, wrong).checks}
    assert {name: count for name, count in found.items() if count} == {"seen": 1}


PLACES = """price = "decimal(9,2)"
bin = { as = "CASE WHEN card < 'c' THEN 'low' ELSE card END" }
costly = { as = "price > 100.5" }
"""
HISTORIC = """
[[metrics]]
sql = "SELECT count(*) AS seen, sum(amount) AS total FROM s GROUP BY bin OVER SLIDING 50 SECONDS"
[[metrics]]
sql = "SELECT count(*) AS ever FROM s GROUP BY bin, costly OVER INFINITE DELAYED BY 10 SECONDS"
"""
