"""Converts stream definitions from and to plain tables: the body of a TOML table or a JSON request."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from railgun.catalog.computed_reading import (
    computed_from_record,
    computed_from_table,
    computed_text,
    computed_to_json,
    computed_to_record,
    is_computed,
    kept_zones,
)
from railgun.catalog.errors import DefinitionError, Location, meant
from railgun.catalog.field_reading import FIELDS_LIMIT, field_text, field_to_json, fields_from_table
from railgun.catalog.input_format import DefinitionsFile
from railgun.catalog.input_reading import input_from_table, input_to_json, shown_input, with_kept_zones
from railgun.catalog.model import ALL, LOGS_FOREVER, FieldDefinition, LatePolicy, StreamDefinition
from railgun.catalog.names import check_stream_name, column_name
from railgun.catalog.output_reading import output_from_table, output_to_json
from railgun.catalog.tables import FOREVER, Table
from railgun.language.computed import ComputedField
from railgun.language.duration import format_duration
from railgun.language.types import Kind, Type

PARTITIONS_LIMIT = 4_096
PARTITIONERS_LIMIT = 32
DEDUP_EVENTS_LIMIT = 100_000_000
LOG_RETENTION_LEAST_MS = 3_600_000

KEYS = (
    "name",
    "time",
    "id",
    "partitioners",
    "lateness",
    "late_policy",
    "max_future",
    "retention",
    "log_retention",
    "partitions",
    "record_replies",
    "dedup_events",
    "input",
    "output",
    "fields",
)
"""The keys of a stream in a request. In a definitions file the name is that of the table."""
EVOLVABLE = ("fields", "lateness", "retention", "log_retention", "input", "output")
"""The keys of what can be changed of a stream that is there."""
_COMPUTED = "computed"
_DEFAULT = StreamDefinition("", ())


def stream_from_table(
    name: object, body: object, loc: Location, folder: Path | None = None
) -> StreamDefinition:
    """Reads a stream from its table and checks every key. Raises DefinitionError.

    folder: that of the definitions file, in which the schema of its input is; None if they are a text alone.
    """
    file = DefinitionsFile(folder)
    stream = _stream(check_stream_name(name, loc), Table(body, loc, KEYS[1:]), file=file)
    check_partitioner_names(stream, loc)
    return stream


def stream_from_json(body: object, registered: StreamDefinition | None = None) -> StreamDefinition:
    """Reads a stream from the body of a request, which has the keys of the file and `name`. Raises DefinitionError.

    registered: the stream as it is. What stays of it keeps its time zones: computed fields, and the condition of its
        input.
    """
    table = Table(body, (), KEYS)
    name = check_stream_name(table.required("name", "the stream's name"), ("name",))
    if registered is None:
        return _stream(name, table)
    stream = _stream(name, table, registered.computed)
    return replace(stream, input=with_kept_zones(stream.input, registered.input))


def stream_from_record(body: object) -> StreamDefinition:
    """Returns the stream that `stream_to_json` wrote. Raises DefinitionError."""
    table = Table(body, (), (*KEYS, _COMPUTED))
    name = check_stream_name(table.required("name", "the stream's name"), ("name",))
    fields = fields_from_table(table.get("fields") or {}, table.at("fields"))
    types = {each.name: each.type for each in fields}
    computed = computed_from_record(table.get(_COMPUTED) or {}, types, name, table.at(_COMPUTED))
    return _made(name, table, fields, computed)


def definition_to_json(stream: StreamDefinition) -> dict[str, Any]:
    """Returns a body from which `stream_from_json` reads an equal definition."""
    kept = stream.log_retention_ms
    body = stream_to_json(stream) | ({} if kept is None else {"log_retention": log_retention_text(kept)})
    body.pop(_COMPUTED, None)
    if said := input_to_json(stream.input):
        body["input"] = said
    if said := output_to_json(stream.output):
        body["output"] = said
    fields = {field.name: field_to_json(field) for field in stream.fields}
    return body | {"fields": fields | {field.name: computed_to_json(field) for field in stream.computed}}


def shown_definition(stream: StreamDefinition) -> dict[str, Any]:
    """Returns the body of `definition_to_json` with a digest in place of the schema of the input."""
    body = definition_to_json(stream)
    return body | ({"input": shown_input(body["input"])} if "input" in body else {})


def value_text(value: object, nothing: str = "not set") -> str:
    """Returns the value of a key of a definition in words. nothing: for one that is not set."""
    if value is None:
        return nothing
    if isinstance(value, list):
        return ", ".join(value)
    if isinstance(value, dict):
        return "; ".join(f"{key} {value_text(each, nothing)}" for key, each in value.items())
    return str(value).lower() if isinstance(value, bool) else str(value)


def field_texts(stream: StreamDefinition, *, places: bool = True) -> dict[str, str]:
    """Returns the fields in words, by name. places: with the paths and units of recorded ones."""
    recorded = {each.name: field_text(each) if places else str(each.type) for each in stream.fields}
    return recorded | {each.name: computed_text(each) for each in stream.computed}


def log_retention_text(log_retention_ms: int) -> str:
    """Returns how long logs are kept, as definitions have it."""
    return FOREVER if log_retention_ms == LOGS_FOREVER else format_duration(log_retention_ms)


def log_retention_from(table: Table) -> int | None:
    """Returns how long logs are kept, in ms, or LOGS_FOREVER; None if the table does not say.

    Raises DefinitionError.
    """
    if table.get("log_retention") == FOREVER:
        return LOGS_FOREVER
    kept_ms = table.duration_ms("log_retention")
    if kept_ms is not None and kept_ms < LOG_RETENTION_LEAST_MS:
        raise DefinitionError(
            table.at("log_retention"),
            f"{format_duration(kept_ms)} is shorter than {format_duration(LOG_RETENTION_LEAST_MS)}",
            "a copy of a task that is away for longer than logs are kept cannot go on",
        )
    return kept_ms


def stream_to_json(stream: StreamDefinition) -> dict[str, Any]:
    """Returns the body of a stream as tasks know it: without `log_retention`, `input` and `output`, with no more of
    recorded fields than types, and with the time zones of computed ones. Older releases would refuse the rest.
    """
    body: dict[str, Any] = {"name": stream.name}
    if stream.time is not None:
        body["time"] = stream.time
    if stream.id is not None:
        body["id"] = stream.id
    body["partitioners"] = list(stream.partitioners)
    body["lateness"] = format_duration(stream.lateness_ms)
    body["late_policy"] = str(stream.late_policy)
    if stream.max_future_ms is not None:
        body["max_future"] = format_duration(stream.max_future_ms)
    body["retention"] = FOREVER if stream.retention_ms is None else format_duration(stream.retention_ms)
    body["partitions"] = stream.partitions
    body["record_replies"] = stream.record_replies
    body["dedup_events"] = stream.dedup_events
    body["fields"] = {field.name: str(field.type) for field in stream.fields}
    if stream.computed:
        body[_COMPUTED] = computed_to_record(stream.computed)
    return body


def _stream(
    name: str, table: Table, known: Iterable[ComputedField] = (), file: DefinitionsFile | None = None
) -> StreamDefinition:
    said, loc = table.get("fields") or {}, table.at("fields")
    if not isinstance(said, Mapping):
        raise DefinitionError(loc, "a table of field types by name belongs here")
    fields = fields_from_table({key: each for key, each in said.items() if not is_computed(each)}, loc)
    types = {each.name: each.type for each in fields}
    return _made(name, table, fields, computed_from_table(said, types, name, loc, kept_zones(known)), file)


def _made(
    name: str,
    table: Table,
    fields: tuple[FieldDefinition, ...],
    computed: tuple[ComputedField, ...],
    file: DefinitionsFile | None = None,
) -> StreamDefinition:
    lateness_ms = table.duration_ms("lateness")
    recorded = {each.name: each.type for each in fields}
    stream = StreamDefinition(
        name=name,
        fields=fields,
        computed=computed,
        time=table.text("time"),
        id=table.text("id"),
        partitioners=table.names("partitioners", _DEFAULT.partitioners),
        lateness_ms=_DEFAULT.lateness_ms if lateness_ms is None else lateness_ms,
        late_policy=LatePolicy(table.choice("late_policy", list(LatePolicy), _DEFAULT.late_policy)),
        max_future_ms=table.duration_ms("max_future"),
        retention_ms=table.duration_or_forever_ms("retention", 30 * 86_400_000),
        partitions=table.integer("partitions", _DEFAULT.partitions, 1, PARTITIONS_LIMIT),
        record_replies=table.flag("record_replies", _DEFAULT.record_replies),
        dedup_events=table.integer("dedup_events", _DEFAULT.dedup_events, 1, DEDUP_EVENTS_LIMIT),
        log_retention_ms=log_retention_from(table),
        input=input_from_table(table.get("input"), recorded, name, table.at("input"), file=file),
        output=output_from_table(
            table.get("output"), [*recorded, *(each.name for each in computed)], table.at("output")
        ),
    )
    check_stream(stream, table.loc)
    return stream


def check_stream(stream: StreamDefinition, loc: Location) -> None:
    """Checks keys against each other: the roles of fields, and the order of durations. Raises DefinitionError."""
    types, recorded = stream.types, stream.recorded_types
    if len(types) > FIELDS_LIMIT:
        raise DefinitionError(
            (*loc, "fields"), f"a stream has at most {FIELDS_LIMIT} fields, not {len(types)}"
        )
    for role, name in (("time", stream.time), ("id", stream.id)):
        if name in types and name not in recorded:
            raise DefinitionError((*loc, role), f"{name} is computed; {role} is a recorded field")
    if stream.time is not None:
        _check_role(types, stream.time, (Kind.TIMESTAMP,), "the time of events", (*loc, "time"))
    if stream.id is not None:
        _check_role(types, stream.id, (Kind.STRING, Kind.LONG), "an id", (*loc, "id"))
    if len(stream.partitioners) > PARTITIONERS_LIMIT:
        raise DefinitionError(
            (*loc, "partitioners"), f"a stream has at most {PARTITIONERS_LIMIT} partitioners"
        )
    for name in stream.partitioners:
        if name != ALL:
            _check_role(types, name, (Kind.STRING, Kind.LONG), "a partitioner", (*loc, "partitioners"))
    lateness = format_duration(stream.lateness_ms)
    if stream.max_future_ms is not None and stream.max_future_ms > stream.lateness_ms:
        raise DefinitionError(
            (*loc, "max_future"),
            f"{format_duration(stream.max_future_ms)} is longer than the lateness, {lateness}: one clock that runs "
            "ahead would make the events of all others late",
            "lower it, or raise lateness",
        )
    if stream.retention_ms is not None and stream.retention_ms < stream.lateness_ms:
        raise DefinitionError(
            (*loc, "retention"),
            f"{format_duration(stream.retention_ms)} is shorter than the lateness, {lateness}",
            "keep events at least as long as they may be late",
        )


def check_partitioner_names(stream: StreamDefinition, loc: Location) -> None:
    """Raises DefinitionError if two partitioners have the same name in topics, folders and columns.

    Only new streams are checked. An old catalogue with such a stream can still be read.
    """
    name = column_name(ALL)
    if ALL in stream.partitioners and name in stream.partitioners:
        raise DefinitionError(
            (*loc, "partitioners"),
            f"the field {name} cannot be a partitioner beside {ALL}, which has that name in folders and columns",
            f"rename the field, or leave out {ALL}",
        )


def _check_role(
    types: Mapping[str, Type], name: str, kinds: tuple[Kind, ...], what: str, loc: Location
) -> None:
    type_ = types.get(name)
    if type_ is None:
        raise DefinitionError(loc, f"there is no field {name[:80]!r}", meant(name, types))
    if type_.kind not in kinds:
        raise DefinitionError(loc, f"{name} is {type_}; {what} is {' or '.join(kinds)}")
