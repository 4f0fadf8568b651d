"""Which names streams, fields and metrics may have."""

import re

from railgun.catalog.errors import DefinitionError, Location
from railgun.catalog.model import ALL

NAME_LIMIT = 63
RESERVED_STREAMS = frozenset({"replies", "catalog", "positions"})
RESERVED_METRIC_PREFIXES = ("late_", "duplicate_")

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)


def check_name(name: object, what: str, loc: Location) -> str:
    """The name itself. Raises DefinitionError where no stream, field or metric can be called so."""
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
    """The name itself. Raises DefinitionError."""
    checked = check_name(name, "stream", loc)
    if checked in RESERVED_STREAMS:
        raise DefinitionError(loc, f"{checked} is a name of Railgun's own topics", "choose another one")
    return checked


def check_metric_name(name: object, id_field: str | None, loc: Location) -> str:
    """The name itself. Raises DefinitionError; replies have columns for the id and for what was late."""
    checked = check_name(name, "metric", loc)
    if checked == (id_field or "id"):
        raise DefinitionError(loc, f"{checked} is the column of the id in replies", "give it a name with AS")
    for prefix in RESERVED_METRIC_PREFIXES:
        if checked.startswith(prefix):
            raise DefinitionError(
                loc,
                f"{checked}: names that begin with {prefix} are columns of replies",
                "give it a name with AS",
            )
    return checked


def column_name(partitioner: str) -> str:
    """A partitioner in the names of columns, topics and folders."""
    return "all" if partitioner == ALL else partitioner
