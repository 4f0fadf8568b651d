"""Converts the output of a stream's definition from and to plain tables."""

from collections.abc import Collection
from typing import Any

from railgun.catalog.errors import DefinitionError, Location, meant
from railgun.catalog.model import OutputDefinition, ReplyKey
from railgun.catalog.names import check_topic_name
from railgun.catalog.tables import Table

_KEYS = ("topic", "dead", "key", "include")
_DEFAULT = OutputDefinition()


def output_from_table(body: object, fields: Collection[str], loc: Location) -> OutputDefinition:
    """Reads an output; a null is the default. fields: the names of the stream's. Raises DefinitionError."""
    if body is None:
        return _DEFAULT
    table = Table(body, loc, _KEYS)
    topic, dead = _topic_name(table, "topic"), _topic_name(table, "dead")
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


def _topic_name(table: Table, key: str) -> str | None:
    """Returns the name of a topic; None if the key is missing. Raises DefinitionError if no topic can have it."""
    name = table.text(key)
    if name is not None:
        check_topic_name(name, table.at(key))
    return name
