"""Converts what a definition says of the topics that a stream's events come from, from and to plain tables."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from railgun.catalog.computed_reading import zones_from_json, zones_to_json
from railgun.catalog.errors import DefinitionError, Location
from railgun.catalog.input_format import (
    DefinitionsFile,
    format_from_table,
    format_keys,
    format_to_json,
    shown_schema,
)
from railgun.catalog.model import EARLIEST, LATEST, InputDefinition
from railgun.catalog.names import check_topic_name
from railgun.catalog.tables import Table
from railgun.language.computed import ComputedField, ComputedFieldError, resolve_computed
from railgun.language.reading import CircleError
from railgun.language.types import Kind, Type
from railgun.language.zones import Zones, pinned_zone

TOPICS_LIMIT = 64
KEYS = ("topics", "start", "where")
# What names a cluster in other programs. It gets an error of its own.
_OF_CLUSTERS = ("broker", "brokers", "bootstrap_servers", "cluster")
_OTHER_CLUSTER = "input topics are on the engine's own cluster"
_MIRROR = "have MirrorMaker 2 copy the topic to that cluster, and name the copy"

_1970, _MS = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)


def input_from_table(
    body: object,
    recorded: Mapping[str, Type],
    stream: str,
    loc: Location,
    zones: Zones = pinned_zone,
    file: DefinitionsFile | None = None,
) -> InputDefinition:
    """Reads the table `input` of a stream. None: nothing is said. Raises DefinitionError.

    recorded: the types of the recorded fields.  stream: the stream's name.  zones: finds the time zones of `where`.
    file: where the table is; None for a request.
    """
    if body is None:
        return InputDefinition()
    table = Table(body, loc, (*KEYS, *format_keys(file), *_OF_CLUSTERS))
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
    where = _where(table, recorded, stream, zones)
    return InputDefinition(topics, _start(table), where, format_from_table(table, file))


def input_to_json(said: InputDefinition) -> dict[str, Any]:
    """Returns a table from which `input_from_table` reads the same; empty if nothing is said."""
    topics = {"topics": list(said.topics)} if said.topics else {}
    start = {} if said.start == EARLIEST else {"start": _start_text(said.start)}
    where = {} if said.where is None else {"where": said.where.text}
    return topics | start | where | ({} if said.format is None else format_to_json(said.format))


def shown_input(body: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what `input_to_json` wrote with a digest in place of a schema, which may be long."""
    return {key: shown_schema(each) if key == "schema" else each for key, each in body.items()}


def input_to_record(said: InputDefinition) -> dict[str, Any]:
    """Returns the table as the catalogue has it: with the tables of the time zones that it names."""
    return input_to_json(said) | ({} if said.where is None else zones_to_json(said.where.zones))


def input_from_record(
    body: Mapping[str, Any] | None, recorded: Mapping[str, Type], stream: str
) -> InputDefinition:
    """Returns what `input_to_record` wrote; None: it wrote nothing. Raises DefinitionError."""
    if body is None:
        return InputDefinition()
    zones, said = zones_from_json(body), {key: each for key, each in body.items() if key != "zones"}
    return input_from_table(said, recorded, stream, ("input",), zones.get)


def with_kept_zones(requested: InputDefinition, registered: InputDefinition) -> InputDefinition:
    """Returns what is requested, with the time zones of the registered condition if it is the same text."""
    where, kept = requested.where, registered.where
    if where is None or kept is None or where.text != kept.text:
        return requested
    return replace(requested, where=kept)


def _where(table: Table, recorded: Mapping[str, Type], stream: str, zones: Zones) -> ComputedField | None:
    """Reads the condition of the records that are taken. Raises DefinitionError."""
    text = table.text("where")
    if text is None:
        return None
    try:
        (made,) = resolve_computed({"where": text}, recorded, stream, lambda _: zones)
    except (CircleError, ComputedFieldError) as error:
        raise DefinitionError(table.at("where"), str(error)) from error
    if made.type.kind is not Kind.BOOLEAN:
        raise DefinitionError(table.at("where"), f"{made.text} is {made.type}; a condition is boolean")
    return made


def _start(table: Table) -> str | int:
    """Reads where topics are begun: a word, a time as text, or a time of TOML. Raises DefinitionError."""
    said = table.get("start")
    if said is None:
        return EARLIEST
    if said in (EARLIEST, LATEST):
        return str(said)
    time = said
    if isinstance(said, str):
        try:
            time = datetime.fromisoformat(said)
        except ValueError:
            time = None
    if not isinstance(time, datetime) or time.tzinfo is None or time < _1970:
        raise DefinitionError(
            table.at("start"),
            f"{str(said)[:80]!r} is no place to start at",
            f'"{EARLIEST}", "{LATEST}", or a time with its offset, as in "2026-01-31T00:00:00Z"',
        )
    return (time - _1970) // _MS


def _start_text(start: str | int) -> str:
    if isinstance(start, str):
        return start
    return (_1970 + start * _MS).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _check_topic(topic: str, loc: Location) -> None:
    if ":" in topic or "/" in topic:
        raise DefinitionError(loc, f"{topic[:80]!r} is no name of a topic: {_OTHER_CLUSTER}", _MIRROR)
    check_topic_name(topic, loc)
