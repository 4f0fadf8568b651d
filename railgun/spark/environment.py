"""A Spark on this machine: whether it can run is asked before anything starts, and answered in one line."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from railgun.spark.errors import SetupError
from railgun.spark.java_process import interrupted_as_before, start_spark

JAVA_VERSIONS = (17, 21)
SPARK_LEAST = (4, 2)
FEW_KEPT: dict[str, Any] = {
    "spark.sql.ui.retainedExecutions": 1,
    "spark.ui.retainedJobs": 10,
    "spark.ui.retainedStages": 10,
    "spark.ui.retainedTasks": 100,
}
"""Where nobody looks at Spark's UI. Spark writes down each query that it ran, a thousand of them, and in each its whole
plan: those of a validation with many metrics fill the heap."""

_LOG4J = Path(__file__).with_name("log4j2.properties")
# PySpark logs what Spark refuses, with all its traces, beside the error that it raises.
_SAID_TWICE = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_VERSION = re.compile(r'version "(\d+)')
_TIMEOUT_S = 60


def local_session(cores: int = 0, memory: str = "1g") -> SparkSession:
    """A Spark on this machine; under spark-submit the one that was asked for there. cores: 0 for all.

    Raises SetupError where Java or Spark will not do.
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
        # Between its processes: a busy machine may keep one of them waiting, more so at a low priority.
        "spark.python.authenticate.socketTimeout": "600s",
        "spark.ui.enabled": "false",
        # A default: who has options of their own in Spark's configuration may name another file there.
        "spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}",
        "spark.ui.showConsoleProgress": "false",
    }
    with interrupted_as_before():
        start_spark(settings)
    return SparkSession.builder.getOrCreate()


def check_environment() -> None:
    """Raise SetupError where there is no Java or no PySpark that will do."""
    check_spark()
    check_java(find_java())


def check_spark(version: str | None = None) -> None:
    """Raise SetupError where PySpark is missing or too old. version: the installed one's unless given."""
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
    """The java program that Spark will start. Raises SetupError where there is none."""
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
    """Raise SetupError where a java program is of a version that Spark does not run on."""
    try:
        said = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SetupError(
            f"{java} -version does not run ({error}); install Java 17, or set JAVA_HOME"
        ) from error
    found = _VERSION.search(said.stderr + said.stdout)
    version = int(found[1]) if found else 0
    if version not in JAVA_VERSIONS:
        wanted = " or ".join(map(str, JAVA_VERSIONS))
        raise SetupError(
            f"{java} is Java {version or 'of an unknown version'}; Spark runs on Java {wanted}: set JAVA_HOME to one"
        )
