"""The data source in Spark itself: logs and reservoirs as tables, filters pushed, a log followed."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.spark.folders import START_MS, STEP_MS, filled, payments

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def test_a_log_and_its_reservoirs_are_tables(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    engine = filled(Path(folder), 200)
    try:
        read = spark.read.format("railgun").option("partitioner", "card")
        rows = read.load(folder).where(
            F.col("event_time") < F.timestamp_millis(F.lit(START_MS + 50 * STEP_MS))
        )
        by_card = {row["card"]: row["count"] for row in rows.groupBy("card").count().collect()}
        assert by_card == {f"c{n}": 10 for n in range(5)}
        sums = read.option("source", "reservoir").load(folder).agg(F.sum("price"), F.count("*")).first()
        assert sums is not None
        assert 0 < sums[1] < 200
        with pytest.raises(PySparkException, match="did you mean card"):
            spark.read.format("railgun").option("partitioner", "crad").load(folder)
        following = (
            spark.readStream.format("railgun")
            .option("partitioner", "card")
            .option("columns", "id,offset")
            .load(folder)
            .writeStream.format("memory")
            .queryName("followed")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start()
        )
        try:
            following.processAllAvailable()
            engine.score_table("payments", payments(200, 30))
            following.processAllAvailable()
            assert spark.table("followed").select("id").distinct().count() == 230
        finally:
            following.stop()
    finally:
        engine.close()
