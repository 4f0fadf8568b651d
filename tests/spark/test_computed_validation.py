"""Validation of streams with computed fields: Spark computes them by its own expressions, and routes by them."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from railgun.spark.validation.validate_run import validate_run
from tests.spark.runs import START_MS, add_to_replies, run

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
