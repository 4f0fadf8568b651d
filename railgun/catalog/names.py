"""Checks the names of streams, fields and topics. The language checks metrics' names, except against the column of the
id."""

import re

from railgun.catalog.errors import DefinitionError, Location
from railgun.catalog.model import ALL
from railgun.language.limits import NAME_LIMIT

RESERVED_STREAMS = frozenset({"replies", "catalog", "positions"})
# The remedy if two metrics have the same name.
ANOTHER_NAME = "give one of them another name with AS"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
# As brokers have it. They refuse the two names of dots too.
_TOPIC = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}", re.ASCII)


def check_name(name: object, what: str, loc: Location) -> str:
    """Returns the name. Raises DefinitionError if no stream, field or metric can have it."""
    if not isinstance(name, str):
        raise DefinitionError(loc, f"a {what}'s name is text, not {type(name).__name__}")
    if not _NAME.fullmatch(name):
        raise DefinitionError(
            loc, f"{name[:80]!r} cannot name a {what}", "a letter, then letters, digits and _ (ASCII)"
        )
    if len(name) > NAME_LIMIT:
        raise DefinitionError(
            loc, f"the name of a {what} has at most {NAME_LIMIT} characters, not {len(name)}"
        )
    return name


def check_stream_name(name: object, loc: Location) -> str:
    """Returns the name. Raises DefinitionError if no stream can have it."""
    checked = check_name(name, "stream", loc)
    if checked in RESERVED_STREAMS:
        raise DefinitionError(loc, f"{checked} is a name of Railgun's own topics", "choose another one")
    return checked


def check_is_not_id(name: str, id_field: str | None, loc: Location) -> None:
    """Raises DefinitionError if a metric has the name that the id's column has in replies."""
    if name == (id_field or "id"):
        raise DefinitionError(loc, f"{name} is the column of the id in replies", "give it a name with AS")


def check_topic_name(name: str, loc: Location) -> None:
    """Raises DefinitionError if no topic can have the name."""
    if not _TOPIC.fullmatch(name):
        raise DefinitionError(
            loc,
            f"{name[:80]!r} cannot name a topic",
            "letters, digits, '.', '_' and '-' (ASCII), at most 249",
        )


def column_name(partitioner: str) -> str:
    """Returns the name of a partitioner in columns, topics and folders."""
    return "all" if partitioner == ALL else partitioner
