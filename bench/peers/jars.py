"""The jars of Kafka that peers need. `make peers-setup` fetches those of Kafka Streams: `python -m bench.peers.jars`.

What else they need are jars of the local broker, of the same release.
"""

import sys
from pathlib import Path

from bench.peers.packages import FOLDER
from railgun.broker.artifacts import KAFKA_VERSION, Bundle, locked_jars
from railgun.broker.errors import FetchError
from railgun.broker.installation import install, install_bundle, is_installed

_JARS = locked_jars(Path(__file__).with_name("jars.lock"))
STREAMS_VERSION = next(jar.version for jar in _JARS if jar.artifact == "kafka-streams")
_ROOT = ("org.apache.kafka", "kafka-streams", STREAMS_VERSION)
_BUNDLE = Bundle(f"Kafka Streams {STREAMS_VERSION}", 75, (_ROOT,), _JARS)
_FOLDER = FOLDER.parent / "jars" / STREAMS_VERSION


def missing() -> str | None:
    """Return why Kafka Streams cannot run here, or None."""
    return None if is_installed(_BUNDLE, _FOLDER) else f"{_BUNDLE.name} is not installed: make peers-setup"


def class_path() -> str:
    """Return the class path of a program that uses Kafka Streams. The broker's jars are fetched if they are missing."""
    return f"{_FOLDER}/*:{install(_say)}/*"


def clients_class_path() -> str:
    """Return the class path of a program that uses Kafka's clients alone. They are one of the broker's jars."""
    return f"{install(_say)}/kafka-clients-{KAFKA_VERSION}.jar"


def _say(line: str) -> None:
    print(line, file=sys.stderr)


if __name__ == "__main__":
    try:
        install_bundle(_BUNDLE, _FOLDER, _say)
    except FetchError as error:
        sys.exit(str(error))
