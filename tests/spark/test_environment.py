"""A Spark on this machine says what is news, and nothing else; and ends as it is asked to."""

import os
import subprocess
import sys

import pyspark
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

_HEAD = """
import os, signal, sys, threading, time
from pyspark.errors import PySparkException
from railgun.spark.environment import local_session
from railgun.spark.errors import SetupError

children = lambda: os.popen(f"pgrep -P {os.getpid()} -a").read()
"""
_ONE_LIFE = """
spark = local_session(1)
for query in ("SELECT nonsense(1)", "SELECT raise_error('of a worker')"):
    try:
        spark.sql(query).collect()
    except PySparkException as error:
        print("of a worker" in str(error), file=sys.stderr)
spark._jvm.java.lang.System.err.println("of Java")
spark.stop()

spark = local_session(1)
print(spark.range(3).count(), file=sys.stderr)
print(children().count("SparkSubmit"), file=sys.stderr)
"""
# The second call to Spark is answered as itself only where the one that was interrupted is over for Python too. PySpark
# calls Java as it cleans up, and sometimes gets no answer: the interrupt is behind that error then, where the command
# line looks for it too.
_INTERRUPTED = """
from railgun.cli.main import _interrupt_behind
spark = local_session(1)
def interrupt():
    while not spark.sparkContext.statusTracker().getActiveJobsIds():
        time.sleep(0.02)
    # The job is there before Python waits for it: a sooner interrupt may come amid the call that begins it.
    time.sleep(1)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    spark.range(1 << 50).selectExpr("sum(hash(id))").collect()
except BaseException as error:
    if _interrupt_behind(error) is None:
        raise
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
_ENDED_EARLY = """
class Asked(KeyboardInterrupt): ...
def handler(*_): raise Asked
signal.signal(signal.SIGTERM, handler)

def ask():
    if sys.argv[1][0].isdigit():
        time.sleep(float(sys.argv[1]))
    else:
        while sys.argv[1] not in children():
            time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=ask).start()
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


@pytest.fixture(scope="module")
def one_life(java: None) -> list[str]:
    """What a process says whose one Java runs two Sparks."""
    return said(_ONE_LIFE)


def test_what_is_raised_is_said_once(one_life: list[str]) -> None:
    assert one_life[:3] == ["False", "True", "of Java"]


def test_one_java_runs_one_spark_after_the_other(one_life: list[str]) -> None:
    assert one_life[3:] == ["3", "1"]


def test_an_interrupt_leaves_no_traces(java: None) -> None:
    assert said(_INTERRUPTED) == [pyspark.__version__, "True"]


def test_a_java_that_does_not_start_is_told(java: None) -> None:
    lines = said(_NOT_STARTED)
    assert lines[0] == "Invalid maximum heap size: -Xmx1x"
    assert lines[-2].startswith("Java ended before Spark ran in it, it says above why; look at --memory")
    # The third has enough memory, and starts.
    assert lines[-1].startswith("Spark does not start: ")
    assert "must be at least" in lines[-1]
    assert not [line for line in lines if "at org.apache" in line]


@pytest.mark.parametrize(
    "when",
    [
        "SparkSubmit",
        *(pytest.param(each, marks=pytest.mark.torture) for each in ("pyspark-shell", "0.4", "0.8", "1.6")),
    ],
)
def test_who_is_asked_to_end_while_java_starts_leaves_none(java: None, when: str) -> None:
    """Once there is a process with that in its command, or so many seconds after the start."""
    # Java holds this process's stderr until it has ended, and is waited for by that.
    assert said(_ENDED_EARLY, when) == ["asked True"]
