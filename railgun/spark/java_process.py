"""The Java of a Spark on this machine: it says what somebody can do something about, and ends as its user asked."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from railgun.spark.errors import SetupError
from railgun.spark.worker_errors import SPARK_ERRORS, first_line

# Spark's own scripts start Java with that module; it is said before there is anything that could be told not to.
_NO_NEWS = b"WARNING: Using incubator modules: jdk.incubator.vector\n"
# Py4J logs with all its traces what it raises too; this at the root.
_RAISED_TOO = "while sending command"
_JOIN_S = 5


def start_spark(settings: Mapping[str, Any]) -> None:
    """Start Java, and Spark in it, unless this process has one. Raises SetupError where it does not start."""
    if SparkContext._active_spark_context is not None:
        return
    conf = SparkConf().setAll([(name, str(value)) for name, value in settings.items()])
    try:
        with _stderr() as written:
            gateway = launch_gateway(conf, {"stderr": written})  # type: ignore[no-untyped-call]
    except PySparkRuntimeError as error:
        raise SetupError(
            "Java ended before Spark ran in it, it says above why; look at --memory, and at the options of Java's that "
            "JDK_JAVA_OPTIONS, JAVA_TOOL_OPTIONS and Spark's own configuration have"
        ) from error
    try:
        SparkContext(conf=conf, gateway=gateway)
    except SPARK_ERRORS as error:
        raise SetupError(f"Spark does not start: {first_line(error)}") from error


@contextmanager
def interrupted_as_before() -> Iterator[None]:
    """PySpark makes interrupts its own: it then asks Spark to stop all work, in the middle of whatever call is under
    way, which fails of that with traces of its own. All the work ends with this process.
    """
    logging.getLogger().addFilter(_is_news)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _is_news(record: logging.LogRecord) -> bool:
    return _RAISED_TOO not in record.getMessage()


@contextmanager
def _stderr() -> Iterator[int]:
    """A file that a process may write to: lines come out at our stderr. Where the block fails, all of them first."""
    read, written = os.pipe()
    thread = threading.Thread(target=_pass_on, args=(read,), name="railgun-java-stderr", daemon=True)
    thread.start()
    try:
        yield written
    except BaseException:
        os.close(written)
        thread.join(_JOIN_S)
        raise
    os.close(written)


def _pass_on(read: int) -> None:
    with open(read, "rb") as lines:
        for line in lines:
            if line != _NO_NEWS:
                sys.stderr.write(line.decode(errors="backslashreplace"))
                sys.stderr.flush()
