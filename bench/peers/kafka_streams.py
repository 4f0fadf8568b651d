"""Kafka Streams: an aggregation over sliding windows, on RocksDB with changelog topics.

    python -m bench.peers.kafka_streams SETUP TASK

The Java program beside it (streams/SlidingSums.java) takes this process's place.
"""

import os
import sys
from pathlib import Path

from bench.peers import jars
from bench.peers.java import compiled, missing_jdk
from bench.peers.protocol import Task

_SOURCE = Path(__file__).resolve().parent / "streams" / "SlidingSums.java"
_HEAP = "-Xmx3g"
_LOGGING = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
_VANILLA = {
    "auto.offset.reset": "earliest",
    # Else updates of a window that follow on one another are made one, and come out with the next commit.
    "statestore.cache.max.bytes": "0",
}
_SETUPS = {
    "vanilla": _VANILLA,
    "tuned": {**_VANILLA, "rocksdb.config.setter": "SlidingSums$LargeCaches", "max.poll.records": "10000"},
    # Kafka Streams has its producer wait for more records, for up to 100 ms.
    "prompt": {**_VANILLA, "producer.linger.ms": "0"},
}


def missing() -> str | None:
    """Return why Kafka Streams cannot run here, or None."""
    return missing_jdk() or jars.missing()


def main(setup: str, text: str) -> None:
    """Become the Java program."""
    task = Task.of_text(text)
    class_path = jars.class_path()
    classes = compiled(_SOURCE, class_path)
    settings = {
        "application.id": task.prefix,
        "bootstrap.servers": task.broker,
        "state.dir": str(task.folder / "state"),
        **_SETUPS[setup],
    }
    command = ["java", _HEAP, _LOGGING, *(f"-Dstreams.{key}={value}" for key, value in settings.items())]
    command += ["-cp", f"{classes}:{class_path}", "SlidingSums"]
    command += [task.input, task.output, str(task.disorder_ms), *map(str, task.windows_ms)]
    os.execvp("java", command)


if __name__ == "__main__":
    main(*sys.argv[1:])
