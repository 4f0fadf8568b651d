"""Converts what a definition says of the topics that a stream's events come from, from and to plain tables."""

import re
from typing import Any

from railgun.catalog.errors import DefinitionError, Location
from railgun.catalog.model import InputDefinition
from railgun.catalog.tables import Table

TOPICS_LIMIT = 64
KEYS = ("topics",)
# What names a cluster in other programs. It gets an error of its own.
_OF_CLUSTERS = ("broker", "brokers", "bootstrap_servers", "cluster")
_OTHER_CLUSTER = "input topics are on the engine's own cluster"
_MIRROR = "have MirrorMaker 2 copy the topic to that cluster, and name the copy"

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}", re.ASCII)


def input_from_table(body: object, loc: Location) -> InputDefinition:
    """Reads the table `input` of a stream. None: nothing is said. Raises DefinitionError."""
    if body is None:
        return InputDefinition()
    table = Table(body, loc, (*KEYS, *_OF_CLUSTERS))
    for key in _OF_CLUSTERS:
        if table.has(key):
            raise DefinitionError(table.at(key), _OTHER_CLUSTER, _MIRROR)
    topics = table.names("topics", ())
    if len(topics) > TOPICS_LIMIT:
        raise DefinitionError(
            table.at("topics"), f"a stream has at most {TOPICS_LIMIT} input topics, not {len(topics)}"
        )
    for topic in topics:
        _check_topic(topic, table.at("topics"))
    return InputDefinition(topics)


def input_to_json(said: InputDefinition) -> dict[str, Any]:
    """Returns a table from which `input_from_table` reads the same; empty if nothing is said."""
    return {"topics": list(said.topics)} if said.topics else {}


def _check_topic(topic: str, loc: Location) -> None:
    if ":" in topic or "/" in topic:
        raise DefinitionError(loc, f"{topic[:80]!r} is no name of a topic: {_OTHER_CLUSTER}", _MIRROR)
    if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise DefinitionError(
            loc,
            f"{topic[:80]!r} cannot name a topic",
            "letters, digits, '.', '_' and '-', at most 249 (ASCII)",
        )
