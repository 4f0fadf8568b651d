"""The Java of a Spark on this machine: it says what somebody can do something about, and ends as its user asked."""

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
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
_OF_PY4J = "java_gateway"
_JOIN_S, _END_S = 5, 10
_ENDING = (signal.SIGINT, signal.SIGTERM)


def start_spark(settings: Mapping[str, Any]) -> None:
    """Start Java, and Spark in it, unless this process has them. Raises SetupError where one does not start.

    A Java that has run a Spark before runs the next one too: with its own memory, whatever the settings say.
    """
    if SparkContext._active_spark_context is not None:
        return
    conf = SparkConf().setAll([(name, str(value)) for name, value in settings.items()])
    is_new = SparkContext._gateway is None
    if is_new:
        with _signals_after():
            _start_java(conf)
    try:
        SparkContext(conf=conf)
    except SPARK_ERRORS as error:
        # Java is asked for it: before it ends.
        said = first_line(error)
        if is_new:
            _end_java()
        raise SetupError(f"Spark does not start: {said}") from error


def _start_java(conf: SparkConf) -> None:
    try:
        with _stderr() as written:
            gateway = launch_gateway(conf, {"stderr": written})  # type: ignore[no-untyped-call]
    except PySparkRuntimeError as error:
        raise SetupError(
            "Java ended before Spark ran in it, it says above why; look at --memory, and at the options of Java's that "
            "JDK_JAVA_OPTIONS, JAVA_TOOL_OPTIONS and Spark's own configuration have"
        ) from error
    SparkContext._gateway, SparkContext._jvm = gateway, gateway.jvm


def _end_java() -> None:
    """End the Java that was started here: the next Spark may be given other memory."""
    gateway: Any = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    # It ends once nobody can write to it.
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(_END_S)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()


@contextmanager
def _signals_after() -> Iterator[None]:
    """What asks this process to end while the block runs does so after it.

    A Java that is left before it has said where it listens fails of that, and stays for good.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    # None is a handler that is not Python's: it cannot be put back.
    before = {
        number: handler
        for number in _ENDING
        if (handler := signal.getsignal(number)) not in (None, signal.SIG_IGN)
    }
    for number in before:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


@contextmanager
def interrupted_as_before() -> Iterator[None]:
    """PySpark makes interrupts its own: it then asks Spark to stop all work, in the middle of whatever call is under
    way, which fails of that with traces of its own. All the work ends with this process.

    Py4J logs no more what it raises too, from here on.
    """
    logging.getLogger().addFilter(_is_news)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _is_news(record: logging.LogRecord) -> bool:
    return record.module != _OF_PY4J or _RAISED_TOO not in str(record.msg)


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
            # Java waits for whoever reads this: it is read to its end, also where it cannot be passed on.
            if line != _NO_NEWS and sys.stderr is not None:
                with suppress(OSError, ValueError):
                    sys.stderr.write(line.decode(errors="backslashreplace"))
                    sys.stderr.flush()
