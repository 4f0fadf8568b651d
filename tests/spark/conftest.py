"""One Spark session for all tests of this folder; without a Java that does they are skipped, saying so."""

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from railgun.spark.environment import FEW_KEPT, check_environment
from railgun.spark.errors import SetupError
from railgun.spark.tables.source import register


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    try:
        check_environment()
    except SetupError as error:
        pytest.skip(str(error))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config(map=FEW_KEPT)
        .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    try:
        register(session)
        yield session
    finally:
        session.stop()
