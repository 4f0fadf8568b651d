"""The jars of a broker with their hashes, and a check whether a folder has all of them."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

KAFKA_VERSION = "4.3.1"
# All other jars follow from these. Tools that resolve dependencies themselves get only these.
ROOTS = (("org.apache.kafka", "kafka_2.13", KAFKA_VERSION), ("org.slf4j", "slf4j-simple", "1.7.36"))

_LOCK = Path(__file__).with_name("jars.lock")


class Jar(NamedTuple):
    """An artifact of a Maven repository. sha256: the hash of its file, in hexadecimal."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def path(self) -> str:
        """The path of its file in a Maven repository."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.name}"


class Bundle(NamedTuple):
    """Jars that are fetched together.

    name, size_mb: what people are told.  roots: group, artifact and version of those from which the others follow.
    """

    name: str
    size_mb: int
    roots: Sequence[tuple[str, str, str]]
    jars: Sequence[Jar]


def locked_jars(lock: Path = _LOCK) -> tuple[Jar, ...]:
    """Return every jar that a file pins, by default those of the broker. A line is `group:artifact:version sha256`."""
    return tuple(_jars(lock.read_text(encoding="ascii")))


def _jars(text: str) -> Iterator[Jar]:
    for line in text.splitlines():
        coordinates, sha256 = line.split()
        group, artifact, version = coordinates.split(":")
        yield Jar(group, artifact, version, sha256)


def unsound(folder: Path, jars: Sequence[Jar]) -> list[str]:
    """Return the names of the jars that a folder lacks, or whose bytes are not the pinned ones."""
    return [jar.name for jar in jars if _sha256(folder / jar.name) != jar.sha256]


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ""
