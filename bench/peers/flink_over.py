"""Flink SQL: an OVER aggregation with a RANGE of row time, in an embedded cluster with one task manager.

    python -m bench.peers.flink_over STATE_BACKEND TASK

The Java program beside it (flink/OverRange.java) takes this process's place.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.peers.packages import FOLDER, lacking
from bench.peers.protocol import Task

PACKAGE = "apache-flink-libraries"
_SOURCE = Path(__file__).resolve().parent / "flink" / "OverRange.java"
_CLASSES = FOLDER.parent / "classes"
_JARS = FOLDER / "pyflink" / "lib"
_HEAP = "-Xmx3g"
# Flink's own serializers and shutdown reach into these packages of Java 17.
_OPENED = [
    "java.base/java.util",
    "java.base/java.lang",
    "java.base/java.time",
    "java.base/java.util.concurrent",
]


def missing() -> str | None:
    """Return why Flink cannot run here, or None."""
    for command in ("java", "javac"):
        if shutil.which(command) is None:
            return f"{command} is not installed: a JDK 17 is needed"
    return lacking(PACKAGE)


def compile_program() -> None:
    """Compile the Java program, unless that was done since it was changed. Raises CalledProcessError."""
    made = _CLASSES / "OverRange.class"
    if made.is_file() and made.stat().st_mtime > _SOURCE.stat().st_mtime:
        return
    _CLASSES.mkdir(parents=True, exist_ok=True)
    command = ["javac", "-nowarn", "-cp", f"{_JARS}/*", "-d", str(_CLASSES), str(_SOURCE)]
    subprocess.run(command, check=True, stdout=sys.stderr)


def main(backend: str, text: str) -> None:
    """Become the Java program."""
    compile_program()
    task = Task.of_text(text)
    command = ["java", _HEAP, *(f"--add-opens={each}=ALL-UNNAMED" for each in _OPENED)]
    command += ["-cp", f"{_CLASSES}:{_JARS}/*", "OverRange"]
    command += [str(task.events), str(task.results), backend, str(task.disorder_ms), str(task.folder)]
    os.execvp("java", [*command, *map(str, task.windows_ms)])


if __name__ == "__main__":
    main(*sys.argv[1:])
