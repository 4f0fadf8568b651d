"""Makes the Java commands and the properties of a broker that is small, alone, and on loopback only."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from railgun.broker.errors import JavaError

VERSION_MIN = 17
_ANSWER_S = 60
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
_INSTALL = "install a Java 17 runtime (Debian: openjdk-17-jre-headless) or let JAVA_HOME name one"


def find_java() -> Path:
    """Return the `java` of JAVA_HOME, or else of PATH. Raises JavaError if it is missing or too old."""
    home = os.environ.get("JAVA_HOME")
    named = Path(home) / "bin" / "java" if home else None
    if named is not None and not os.access(named, os.X_OK):
        raise JavaError(str(named), "JAVA_HOME names no Java", _INSTALL)
    found = str(named) if named is not None else shutil.which("java")
    if found is None:
        raise JavaError("java", "Kafka needs Java, and none is on the PATH", _INSTALL)
    version = _version(found)
    if version < VERSION_MIN:
        raise JavaError(found, f"it is Java {version}, and Kafka needs {VERSION_MIN} or newer", _INSTALL)
    return Path(found)


def _version(java: str) -> int:
    try:
        printed = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_ANSWER_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaError(java, f"it does not run ({error})", _INSTALL) from error
    found = _VERSION.search(printed.stderr + printed.stdout)
    if found is None:
        raise JavaError(java, "it does not say which version it is", _INSTALL)
    major = int(found[1])
    # Java 8 calls itself 1.8.
    return int(found[2] or 0) if major == 1 else major


HOST = "127.0.0.1"

# The heap suits a development machine. Much of it is for young objects: a collection stops the broker for some 10 ms.
# Java's slow compiler stays on. With the quick one alone a broker is ready a second earlier. But if 500 events a second
# go through it one by one, it then takes three quarters of a core instead of a half.
_MEMORY = (
    "-Xms192m",
    "-Xmx448m",
    "-Xmn128m",
    "-XX:MetaspaceSize=64m",
    "-XX:+UseSerialGC",
)
# Code of a process that ends soon would be compiled a second time and not run any more.
QUICK_COMPILER = "-XX:TieredStopAtLevel=1"
_LOGGING = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS",
)


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of a broker: one for clients, one on which it talks with itself as its own controller."""

    client: int
    controller: int


def properties(logs: Path, ports: Ports) -> str:
    """Return the text of `server.properties`. logs: the folder of Kafka's data."""
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": f"{HOST}:{ports.controller}",
        "listeners": f"PLAINTEXT://{HOST}:{ports.client},CONTROLLER://{HOST}:{ports.controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{ports.client},CONTROLLER://{HOST}:{ports.controller}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(logs),
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "default.replication.factor": "1",
        "min.insync.replicas": "1",
        # By default Kafka takes 128 MiB for cleaning, and a minute to give back the space of a deleted topic.
        "log.cleaner.dedupe.buffer.size": "4194304",
        "log.segment.delete.delay.ms": "1000",
    }
    return "".join(f"{key}={_escaped(value)}\n" for key, value in settings.items())


def _escaped(value: str) -> str:
    """Escape a text for Java's properties: double backslashes, and write characters outside ASCII by their codes."""
    escaped = value.replace("\\", "\\\\")
    return "".join(c if c.isascii() else f"\\u{ord(c):04x}" for c in escaped)


def format_command(java: Path, jars: Path, cluster_id: str, properties_file: Path) -> list[str]:
    """Return the command that makes the data folder of a new broker."""
    options = ["-t", cluster_id, "--standalone", "-c", str(properties_file)]
    return [*_java(java, jars, [QUICK_COMPILER]), "kafka.tools.StorageTool", "format", *options]


def serve_command(java: Path, jars: Path, properties_file: Path, options: Sequence[str] = ()) -> list[str]:
    """Return the command that runs the broker until SIGTERM. options: further options for Java."""
    return [*_java(java, jars, options), "kafka.Kafka", str(properties_file)]


def _java(java: Path, jars: Path, options: Sequence[str]) -> list[str]:
    return [str(java), *_MEMORY, *_LOGGING, *options, "-cp", f"{jars}/*"]
