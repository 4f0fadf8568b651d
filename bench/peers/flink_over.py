"""Flink SQL: an OVER aggregation with a RANGE of row time, in an embedded cluster with one task manager.

    python -m bench.peers.flink_over STATE_BACKEND SETUP TASK

The Java program beside it (flink/OverRange.java) takes this process's place.
"""

import os
import sys
from pathlib import Path

from bench.peers.java import compiled, missing_jdk
from bench.peers.packages import FOLDER, lacking
from bench.peers.protocol import Task

PACKAGE = "apache-flink-libraries"
_SOURCE = Path(__file__).resolve().parent / "flink" / "OverRange.java"
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


def missing() -> str | None:
    """Return why Flink cannot run here, or None."""
    return missing_jdk() or lacking(PACKAGE)


def main(backend: str, setup: str, text: str) -> None:
    """Become the Java program."""
    classes = compiled(_SOURCE, _JARS)
    task = Task.of_text(text)
    folders = {"state.backend.rocksdb.localdir": str(task.folder), "io.tmp.dirs": str(task.folder)}
    settings = {"state.backend.type": backend, **folders, **_SETUPS[setup]}
    command = ["java", _HEAP, *(f"--add-opens={each}=ALL-UNNAMED" for each in _OPENED)]
    command += [f"-Dflink.{key}={value}" for key, value in settings.items()]
    command += ["-cp", f"{classes}:{_JARS}", "OverRange"]
    command += [str(task.events), str(task.results), str(task.disorder_ms), *map(str, task.windows_ms)]
    os.execvp("java", command)


if __name__ == "__main__":
    main(*sys.argv[1:])
