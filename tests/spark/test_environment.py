"""A Spark on this machine says errors, and nothing else."""

import os
import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

_SCRIPT = """
import sys
from pyspark.errors import PySparkException
from railgun.spark.environment import local_session

spark = local_session(1)
try:
    spark.sql("SELECT nonsense(1)")
except PySparkException:
    print("refused", file=sys.stderr)
try:
    spark.sql("SELECT raise_error('of a worker')").collect()
except PySparkException:
    pass
spark.stop()
"""
# Of Java itself, before there is anything that could be told.
_JAVA = "WARNING: Using incubator modules: jdk.incubator.vector"


def test_what_is_said(spark: SparkSession) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_LOCAL_IP"}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env=environment, capture_output=True, text=True, timeout=500, check=True,
    )  # fmt: skip
    before, _, after = done.stderr.partition("refused\n")
    assert [line for line in before.splitlines() if line != _JAVA] == []
    assert "ERROR Executor" in after
    assert "of a worker" in after
