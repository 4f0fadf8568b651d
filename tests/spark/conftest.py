"""One Spark session for all tests of this folder; without a Java that does they are skipped, saying so."""

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from railgun.spark.environment import FEW_KEPT, check_environment
from railgun.spark.errors import SetupError
from railgun.spark.tables.source import register
from tests.scheduling import ONE_JVM

# Queries of a few hundred rows are planned, described and compiled for longer than they run. By name what is set in
# tests, and what is set outside (`as_in_production`).
_TINY = {
    "spark.sql.codegen.wholeStage": ("false", "true"),
    "spark.sql.adaptive.enabled": ("false", "true"),
    "spark.sql.ui.explainMode": ("simple", "formatted"),
    "spark.sql.debug.maxToStringFields": ("0", "25"),
}


@pytest.fixture(scope="session")
def java() -> None:
    """A Java that Spark runs on, for tests that start one of their own."""
    try:
        check_environment()
    except SetupError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session", params=[ONE_JVM])
def spark(java: None) -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
        "spark.app.name": "tests",
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.log.level": "ERROR",
        "spark.python.daemon.module": "tests.spark.daemon",
        **FEW_KEPT,
        **{name: value for name, (value, _) in _TINY.items()},
    }
    # Of the context, not of the session: that is what each new session begins with.
    SparkContext(conf=SparkConf().setAll([(name, str(value)) for name, value in settings.items()]))
    session = SparkSession.builder.getOrCreate()
    try:
        register(session)
        yield session
    finally:
        session.stop()


@pytest.fixture
def as_in_production(spark: SparkSession) -> Iterator[None]:
    """Sessions that are made meanwhile have the settings that they have outside tests."""
    conf = spark._jsc.sc().conf()
    for name, (_, value) in _TINY.items():
        conf.set(name, value)
    try:
        yield
    finally:
        for name, (value, _) in _TINY.items():
            conf.set(name, value)
