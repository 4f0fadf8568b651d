"""What Java is told where a command of this package starts Spark on this machine."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

_LOG4J = Path(__file__).with_name("log4j2.properties")
_VARIABLES = (
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "SPARK_SUBMIT_OPTS",
    "PYSPARK_SUBMIT_ARGS",
)
_FILES = ("spark-defaults.conf", "spark-env.sh", "java-opts")
# A collector, or a file of options in which there may be one.
_MAY_NAME_A_COLLECTOR = re.compile(r"Use\w+GC\b|@|-XX:(?:Flags|VMOptionsFile)")


def default_java_options(environment: Mapping[str, str] = os.environ) -> str:
    """A log of errors alone, and the collector that a job of minutes is done soonest with: Java's own choice keeps
    pauses short that nobody waits for, and a validation takes a seventh longer.

    Whoever names a collector, by a variable of Java's or in Spark's configuration, has that one: Java does not start
    with two.
    """
    options = [f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}"]
    if not any(map(_MAY_NAME_A_COLLECTOR.search, _texts(environment))):
        options.append("-XX:+UseParallelGC")
    return " ".join(options)


def _texts(environment: Mapping[str, str]) -> Iterator[str]:
    """All that a user can tell Java by, beside a command of this package."""
    yield from (environment.get(name, "") for name in _VARIABLES)
    folder = environment.get("SPARK_CONF_DIR") or Path(_find_spark_home(), "conf")
    for path in (Path(folder, name) for name in _FILES):
        if path.is_file():
            yield path.read_text(errors="replace")
