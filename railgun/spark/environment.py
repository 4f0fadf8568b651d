"""Starts the Spark and the Java of this machine, and checks before any work whether they can run.

Java's messages are passed on if somebody can do something about them. The process ends as its user asked.
"""

import importlib.metadata
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from railgun.spark.errors import SetupError
from railgun.spark.worker_errors import SPARK_ERRORS, first_line

# Spark's own scripts start Java with this module. Java says so before anything could tell it not to.
_NO_NEWS = b"WARNING: Using incubator modules: jdk.incubator.vector\n"
# Py4J logs errors with all their traces although it raises them too. It does so on the root logger.
_RAISED_TOO = "while sending command"
_OF_PY4J = "java_gateway"
_JOIN_S, _END_S = 5, 10
_ENDING = (signal.SIGINT, signal.SIGTERM)


def start_spark(settings: Mapping[str, Any]) -> None:
    """Start Java, and Spark in it, unless this process has started them.

    Raises SetupError if one of them does not start.

    A Java that has run Spark before runs the next one too, with the memory that it has, whatever the settings say.
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
        # The message comes from Java, so it is read before Java ends.
        message = first_line(error)
        if is_new:
            _end_java()
        raise SetupError(f"Spark does not start: {message}") from error


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
    """End the Java that was started here, so that the next Spark may get other memory."""
    gateway: Any = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    # Java ends when its standard input is closed.
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(_END_S)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()


@contextmanager
def _signals_after() -> Iterator[None]:
    """Put off signals that end this process until the block is left.

    If Java is left before it has said where it listens, it fails and stays for good.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    # None stands for a handler that was not set by Python. It could not be put back.
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
    """Put back the handler of interrupts that PySpark replaces in the block.

    PySpark's handler asks Spark to stop all work. That makes the call under way fail, with traces of its own. This is
    not needed, because all the work ends with this process.

    From here on Py4J does not log errors that it also raises.
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
    """Give a file for a process to write to; its lines appear on our stderr.

    If the block fails, all of them come first.
    """
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
            # Java would wait if nobody read this. So it is read to its end, even if it cannot be passed on.
            if line != _NO_NEWS and sys.stderr is not None:
                with suppress(OSError, ValueError):
                    sys.stderr.write(line.decode(errors="backslashreplace"))
                    sys.stderr.flush()


JAVA_VERSIONS = (17, 21)
SPARK_LEAST = (4, 2)
FEW_KEPT: dict[str, Any] = {
    "spark.sql.ui.retainedExecutions": 1,
    "spark.ui.retainedJobs": 10,
    "spark.ui.retainedStages": 10,
    "spark.ui.retainedTasks": 100,
}
"""Settings for sessions whose UI nobody looks at. Spark keeps the last thousand queries, each with its whole plan. The
plans of a validation with many metrics would fill the heap."""

_LOG4J = Path(__file__).with_name("log4j2.properties")
# PySpark logs errors that it also raises, with all their traces.
_SAID_TWICE = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_VERSION = re.compile(r'version "(\d+)')
_TIMEOUT_S = 60


def local_session(cores: int = 0, memory: str = "1g") -> SparkSession:
    """Return a Spark on this machine; under spark-submit, the one that was asked for there. cores: 0 means all.

    Raises SetupError if Java or Spark is missing or not of a supported version.
    """
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        check_spark(pyspark.__version__)
        with interrupted_as_before():
            return SparkSession.builder.appName("railgun").getOrCreate()
    check_environment()
    for name in _SAID_TWICE:
        PySparkLogger.getLogger(name).disabled = True
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = {
        **FEW_KEPT,
        "spark.app.name": "railgun",
        "spark.master": f"local[{cores or '*'}]",
        "spark.driver.memory": memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # This is between Spark's own processes. A busy machine may delay one of them, more so at a low priority.
        "spark.python.authenticate.socketTimeout": "600s",
        "spark.ui.enabled": "false",
        # This is a default: options of the user's own in Spark's configuration may name another file.
        "spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}",
        "spark.ui.showConsoleProgress": "false",
    }
    with interrupted_as_before():
        start_spark(settings)
    return SparkSession.builder.getOrCreate()


def check_environment() -> None:
    """Raise SetupError if there is no Java or PySpark of a supported version."""
    check_spark()
    check_java(find_java())


def check_spark(version: str | None = None) -> None:
    """Raise SetupError if PySpark is missing or too old. version: by default that of the installed one."""
    try:
        found = version or importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        raise SetupError(
            "PySpark is not installed; run pip install '.[spark]' in Railgun's folder, or use spark-submit's own"
        ) from None
    numbers = tuple(int(part) for part in re.findall(r"\d+", found)[:2])
    if numbers < SPARK_LEAST:
        least = ".".join(map(str, SPARK_LEAST))
        raise SetupError(
            f"PySpark {found} is too old: the data source follows logs in parts, which came with {least}; install "
            f"pyspark>={least}"
        )


def find_java() -> str:
    """Return the java program that Spark will start. Raises SetupError if there is none."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not java.is_file():
            raise SetupError(
                f"JAVA_HOME is {home}, and there is no bin/java in it; let it name a JDK or JRE, or unset it"
            )
        return str(java)
    on_path = shutil.which("java")
    if on_path is None:
        raise SetupError(
            "there is no Java: Spark runs on it; install Java 17 (on Debian: openjdk-17-jre-headless) or set JAVA_HOME"
        )
    return on_path


def check_java(java: str) -> None:
    """Raise SetupError if Spark does not run on a java program's version."""
    try:
        printed = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SetupError(
            f"{java} -version does not run ({error}); install Java 17, or set JAVA_HOME"
        ) from error
    found = _VERSION.search(printed.stderr + printed.stdout)
    version = int(found[1]) if found else 0
    if version not in JAVA_VERSIONS:
        choices = " or ".join(map(str, JAVA_VERSIONS))
        raise SetupError(
            f"{java} is Java {version or 'of an unknown version'}; Spark runs on Java {choices}: set JAVA_HOME to one"
        )
