"""Flink: a Java program of the folder flink/, in an embedded cluster with one task manager.

    python -m bench.peers.flink_program PROGRAM STATE_BACKEND SETUP TASK

OverRange is an OVER aggregation of SQL with a RANGE of row time; KeyedSums is a keyed function of the DataStream API
with timers. The program takes this process's place.
"""

import os
import sys
from pathlib import Path

from bench.peers.java import compiled, missing_jdk
from bench.peers.packages import FOLDER, lacking
from bench.peers.protocol import Task

PACKAGE = "apache-flink-libraries"
_SOURCES = Path(__file__).resolve().parent / "flink"
_JARS = f"{FOLDER}/pyflink/lib/*"
_HEAP = "-Xmx3g"
# Flink's own serializers and shutdown reach into these packages of Java 17.
_OPENED = [
    "java.base/java.util",
    "java.base/java.lang",
    "java.base/java.time",
    "java.base/java.util.concurrent",
]

_VANILLA = {
    "parallelism.default": "1",
    # A watermark for each event, and no waiting for buffers to fill: an answer follows on its event.
    "pipeline.auto-watermark-interval": "0 ms",
    "execution.buffer-timeout.interval": "0 ms",
    "taskmanager.memory.managed.size": "512m",
    "rest.bind-address": "127.0.0.1",
    "taskmanager.bind-host": "127.0.0.1",
    "jobmanager.bind-host": "127.0.0.1",
}
_SETUPS = {
    "vanilla": _VANILLA,
    "tuned": {
        **_VANILLA,
        "pipeline.object-reuse": "true",
        "taskmanager.memory.managed.size": "1g",
        "state.backend.rocksdb.predefined-options": "FLASH_SSD_OPTIMIZED",
        "state.backend.rocksdb.use-bloom-filter": "true",
    },
}
_SETUPS["tuned_timers"] = {**_SETUPS["tuned"], "state.backend.rocksdb.timer-service.factory": "heap"}


def missing() -> str | None:
    """Return why Flink cannot run here, or None."""
    return missing_jdk() or lacking(PACKAGE)


def command(program: str, backend: str, setup: str, folder: Path, more_jars: str = "") -> list[str]:
    """Return the command that starts a program, without its arguments. It is compiled first where that is due.

    folder: for Flink's own files.  more_jars: a class path of what the program needs besides Flink.
    """
    class_path = f"{more_jars}:{_JARS}" if more_jars else _JARS
    classes = compiled(_SOURCES / f"{program}.java", class_path)
    folders = {"state.backend.rocksdb.localdir": str(folder), "io.tmp.dirs": str(folder)}
    settings = {"state.backend.type": backend, **folders, **_SETUPS[setup]}
    made = ["java", _HEAP, *(f"--add-opens={each}=ALL-UNNAMED" for each in _OPENED)]
    made += [f"-Dflink.{key}={value}" for key, value in settings.items()]
    return [*made, "-cp", f"{classes}:{class_path}", program]


def main(program: str, backend: str, setup: str, text: str) -> None:
    """Become the Java program."""
    task = Task.of_text(text)
    made = command(program, backend, setup, task.folder)
    made += [str(task.events), str(task.results), str(task.disorder_ms), *map(str, task.windows_ms)]
    os.execvp("java", made)


if __name__ == "__main__":
    main(*sys.argv[1:])
