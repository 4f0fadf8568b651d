"""A Spark on this machine says what is news, and nothing else; and ends as it is asked to."""

import os
import subprocess
import sys

import pyspark
import pytest
from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

_HEAD = """
import os, signal, sys, threading, time
from pyspark.errors import PySparkException
from railgun.spark.environment import local_session
from railgun.spark.errors import SetupError
"""
_REFUSED = """
spark = local_session(1)
for query in ("SELECT nonsense(1)", "SELECT raise_error('of a worker')"):
    try:
        spark.sql(query).collect()
    except PySparkException as error:
        print("of a worker" in str(error), file=sys.stderr)
spark._jvm.java.lang.System.err.println("of Java")
spark.stop()
"""
# The second call to Spark is answered as itself only where the one that was interrupted is over for Python too.
_INTERRUPTED = """
spark = local_session(1)
def interrupt_the_job():
    while not spark.sparkContext.statusTracker().getActiveJobsIds():
        time.sleep(0.1)
    time.sleep(1)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt_the_job).start()
try:
    spark.range(1 << 50).selectExpr("sum(hash(id))").collect()
except KeyboardInterrupt:
    print(spark.sparkContext.version, file=sys.stderr)
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, file=sys.stderr)
"""
_NOT_STARTED = """
for memory in ("1x", "100m", "600m"):
    try:
        local_session(1, memory)
    except SetupError as error:
        print(error, file=sys.stderr)
"""
_AGAIN = """
for _ in range(2):
    spark = local_session(1)
    print(spark.range(3).count(), file=sys.stderr)
    spark.stop()
print(len(os.popen(f"pgrep -P {os.getpid()} java").read().split()), file=sys.stderr)
"""
_ENDED_EARLY = """
class Asked(KeyboardInterrupt): ...
def handler(*_): raise Asked
signal.signal(signal.SIGTERM, handler)
threading.Timer(float(sys.argv[1]), os.kill, (os.getpid(), signal.SIGTERM)).start()
try:
    local_session(1)
except Asked:
    print("asked", signal.getsignal(signal.SIGTERM) is handler, file=sys.stderr)
"""


def said(script: str, *words: str) -> list[str]:
    """The lines of a process of its own on stderr."""
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_LOCAL_IP"}
    done = subprocess.run(
        [sys.executable, "-c", _HEAD + script, *words],
        env=environment, capture_output=True, text=True, timeout=500, check=True,
    )  # fmt: skip
    return done.stderr.splitlines()


def test_what_is_raised_is_said_once(spark: SparkSession) -> None:
    assert said(_REFUSED) == ["False", "True", "of Java"]


def test_an_interrupt_leaves_no_traces(spark: SparkSession) -> None:
    assert said(_INTERRUPTED) == [pyspark.__version__, "True"]


def test_a_java_that_does_not_start_is_told(spark: SparkSession) -> None:
    lines = said(_NOT_STARTED)
    assert lines[0] == "Invalid maximum heap size: -Xmx1x"
    assert lines[-2].startswith("Java ended before Spark ran in it, it says above why; look at --memory")
    # The third has enough memory, and starts.
    assert lines[-1].startswith("Spark does not start: ")
    assert "must be at least" in lines[-1]
    assert not [line for line in lines if "at org.apache" in line]


def test_one_java_runs_one_spark_after_the_other(spark: SparkSession) -> None:
    assert said(_AGAIN) == ["3", "3", "1"]


@pytest.mark.parametrize("after_s", ["0.4", "0.8", "1.6"])
def test_who_is_asked_to_end_while_java_starts_leaves_none(spark: SparkSession, after_s: str) -> None:
    # Java holds this process's stderr until it has ended, and is waited for by that.
    assert said(_ENDED_EARLY, after_s) == ["asked True"]
