"""Converts the output of a stream's definition from and to plain tables."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from railgun.catalog.errors import DefinitionError, Location, meant
from railgun.catalog.model import OutputDefinition, ReplyKey
from railgun.catalog.tables import Table
from railgun.wording import listed

_KEYS = ("topic", "dead", "key", "include")
_DEFAULT = OutputDefinition()
# As brokers have it. They refuse the two names of dots too.
_TOPIC = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}", re.ASCII)


def output_from_table(body: object, fields: Collection[str], loc: Location) -> OutputDefinition:
    """Reads an output; a null is the default. fields: the names of the stream's. Raises DefinitionError."""
    if body is None:
        return _DEFAULT
    table = Table(body, loc, _KEYS)
    topic, dead = topic_name(table, "topic"), topic_name(table, "dead")
    if topic is not None and topic == dead:
        raise DefinitionError(
            table.at("dead"), f"{topic} gets the replies", "dead letters need a topic of their own"
        )
    include = table.names("include", _DEFAULT.include)
    for name in include:
        if name not in fields:
            raise DefinitionError(
                table.at("include"), f"there is no field {name[:80]!r}", meant(name, fields)
            )
    return OutputDefinition(topic, dead, ReplyKey(table.choice("key", list(ReplyKey), _DEFAULT.key)), include)


def output_to_json(output: OutputDefinition) -> dict[str, Any]:
    """Returns what differs from the default, with the keys of definitions."""
    said: dict[str, Any] = {}
    if output.topic is not None:
        said["topic"] = output.topic
    if output.dead is not None:
        said["dead"] = output.dead
    if output.key is not _DEFAULT.key:
        said["key"] = str(output.key)
    if output.include:
        said["include"] = list(output.include)
    return said


def output_text(said: Mapping[str, Any]) -> str:
    """Returns what `output_to_json` returned in words: `topic scored, include card and amount`."""
    return ", ".join(
        f"{key} {listed(each) if isinstance(each, list) else each}" for key, each in said.items()
    )


def topic_name(table: Table, key: str) -> str | None:
    """Returns the name of a topic; None if the key is missing. Raises DefinitionError if no topic can have it."""
    name = table.text(key)
    if name is not None and not _TOPIC.fullmatch(name):
        raise DefinitionError(
            table.at(key),
            f"{name[:80]!r} cannot name a topic",
            "letters, digits, '.', '_' and '-' (ASCII), at most 249",
        )
    return name
