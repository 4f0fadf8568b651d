"""What Java is told by default never keeps it from starting."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from railgun.spark.java_options import default_java_options

_OURS = "-XX:+UseParallelGC"
_SCRIPT = """
from railgun.spark.environment import local_session

spark = local_session(1)
beans = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
print("collected by", ", ".join(bean.getName() for bean in beans))
spark.stop()
"""


def test_a_collector_is_chosen_where_nobody_has(tmp_path: Path) -> None:
    assert _OURS in default_java_options({"SPARK_CONF_DIR": str(tmp_path)})
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.extraJavaOptions -Da=b\n")
    assert _OURS in default_java_options({"SPARK_CONF_DIR": str(tmp_path), "JAVA_TOOL_OPTIONS": "-Da=b"})


@pytest.mark.parametrize(
    "variable",
    ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS"],
)
@pytest.mark.parametrize(
    "text", ["-Da=b -XX:+UseG1GC", "-XX:+UseShenandoahGC", "@options", "-XX:Flags=f", "-XX:VMOptionsFile=f"]
)
def test_not_where_a_variable_names_one(tmp_path: Path, variable: str, text: str) -> None:
    options = default_java_options({"SPARK_CONF_DIR": str(tmp_path), variable: text})
    assert _OURS not in options
    assert "log4j2" in options


def test_the_folder_is_sparks_own_where_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "java-opts").write_text("-XX:+UseSerialGC")
    assert _OURS in default_java_options({})
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert _OURS not in default_java_options({})


@pytest.mark.parametrize("name", ["spark-defaults.conf", "spark-env.sh", "java-opts"])
def test_nor_where_sparks_configuration_does(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"# \xff\nspark.driver.extraJavaOptions -XX:+UseZGC\n")
    assert _OURS not in default_java_options({"SPARK_CONF_DIR": str(tmp_path)})


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("variables", "configuration", "collector"),
    [
        ({}, "", "PS "),
        ({"JAVA_TOOL_OPTIONS": "-XX:+UseG1GC"}, "", "G1 "),
        ({}, "spark.driver.extraJavaOptions -XX:+UseSerialGC\n", "MarkSweepCompact"),
    ],
)
def test_java_starts_with_either(
    tmp_path: Path, variables: dict[str, str], configuration: str, collector: str
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(configuration)
    environment = {**os.environ, **variables, "SPARK_CONF_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env=environment, capture_output=True, text=True, timeout=500, check=True,
    )  # fmt: skip
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("collected by "))
    assert collector in line
