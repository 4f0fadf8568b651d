"""Reads and checks definitions of streams, metrics and derived metrics: from TOML files and from SQL of requests."""

import re
import tomllib
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from railgun.catalog.derivations import Statement, define_derived
from railgun.catalog.errors import DefinitionError, Location, meant
from railgun.catalog.model import (
    ALL,
    Definitions,
    MetricDefinition,
    StreamDefinition,
    home_partitioner,
)
from railgun.catalog.names import ANOTHER_NAME, check_is_not_id
from railgun.catalog.stream_reading import stream_from_table
from railgun.catalog.tables import Table
from railgun.language.ast import Derivation, Query
from railgun.language.derive import Known, ResolvedDerived
from railgun.language.errors import QueryError
from railgun.language.parser import parse_query, parse_statement
from railgun.language.resolve import ResolvedMetric, resolve

FILE_LIMIT_BYTES = 16 * 1024 * 1024
METRICS_AT_ONCE_LIMIT = 1_000
"""A stream is created with at most so many metrics."""
REQUEST_LIMIT_BYTES = 1 << 20
"""The body of a request about streams and metrics has at most so many bytes."""


# A character of a text that is no TOML, as tomllib names its place.
_PLACE = re.compile(r"\(at line ([0-9]+), column ([0-9]+)\)$", re.ASCII)


def load_definitions(path: Path | str) -> Definitions:
    """Reads a definitions file. Raises DefinitionError, with the file's name, and OSError."""
    file = Path(path)
    if file.stat().st_size > FILE_LIMIT_BYTES:
        raise DefinitionError((), f"larger than {FILE_LIMIT_BYTES} bytes", file=str(path))
    try:
        return parse_definitions(file.read_bytes().decode("utf-8-sig"), file.parent)
    except UnicodeDecodeError as error:
        raise DefinitionError((), f"no UTF-8 at byte {error.start}", file=str(path)) from None
    except DefinitionError as error:
        raise error.in_file(str(path)) from None


def parse_definitions(text: str, folder: Path | None = None) -> Definitions:
    """Reads the streams and metrics in the text of a definitions file. Raises DefinitionError.

    folder: where the files are that it names; None if it may name none.
    """
    try:
        root = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DefinitionError((), f"no TOML: {error}", _unquoted(text, str(error))) from None
    except RecursionError:
        raise DefinitionError((), "no definitions: nested too deep") from None
    table = Table(root, (), ("streams", "metrics"))
    bodies = table.get("streams") or {}
    if not isinstance(bodies, Mapping):
        raise DefinitionError(("streams",), "tables belong here, as in [streams.payments]")
    streams = {
        name: stream_from_table(name, body, ("streams", name), folder) for name, body in bodies.items()
    }
    entries = table.get("metrics")
    if entries is None:
        entries = []
    if not isinstance(entries, list):
        raise DefinitionError(("metrics",), "a list of tables belongs here, as in [[metrics]]")
    read: list[_Parsed] = []
    for i, entry in enumerate(entries):
        sql = Table(entry, ("metrics", i), ("sql",)).required("sql", "a query")
        loc: Location = ("metrics", i, "sql")
        read.append(_Parsed(*_read(sql, streams, loc, is_of_file=True), loc))
    return _defined(streams, read)


def stream_with_metrics(stream: StreamDefinition, queries: Sequence[str]) -> Definitions:
    """Returns a new stream with the metrics of queries and DERIVEs about it, which are read as those of a file are.

    Raises DefinitionError with the place, as in ("metrics", 2) for the third query.
    """
    streams, read = {stream.name: stream}, list[_Parsed]()
    _check_count(len(queries))
    for i, sql in enumerate(queries):
        read.append(_Parsed(*_read(sql, streams, ("metrics", i), is_given_for_one=True), ("metrics", i)))
    _check_count(sum(len(each.statement.items) for each in read))
    return _defined(streams, read)


def _check_count(metrics: int) -> None:
    """Raises DefinitionError if a stream cannot be created with so many metrics: events of others wait meanwhile."""
    if metrics > METRICS_AT_ONCE_LIMIT:
        message = f"a stream is created with at most {METRICS_AT_ONCE_LIMIT:,} metrics, not {metrics:,}"
        raise DefinitionError(("metrics",), message, "add the others once it is there")


class _Parsed(NamedTuple):
    """A statement that was parsed, with its stream, and its place among the metrics."""

    stream: StreamDefinition
    statement: Query | Derivation
    loc: Location


def _defined(streams: Mapping[str, StreamDefinition], read: Sequence[_Parsed]) -> Definitions:
    """Returns streams with the metrics and derived metrics of statements. Raises DefinitionError."""
    metrics, derivations = _statements(read)
    derived: list[ResolvedDerived] = []
    for name, statements in derivations.items():
        known = {each.name: each.resolved.result_type for each in metrics if each.stream == name}
        derived += define_derived(statements, streams[name], known)
    return Definitions(streams, tuple(metrics), tuple(derived))


def _unquoted(text: str, message: str) -> str | None:
    """Returns a hint if a text is no TOML because of a letter that has to be in quotes. message: that of tomllib."""
    place = _PLACE.search(message)
    if place is None:
        return None
    line, column = int(place[1]), int(place[2])
    found = text.split("\n")[line - 1][column - 1 : column]
    return (
        None
        if found.isascii()
        else f"put the name with {found!r} in quotes; only ASCII letters stand without"
    )


def _statements(read: Sequence[_Parsed]) -> tuple[list[MetricDefinition], dict[str, list[Statement]]]:
    """Returns (the metrics of queries, the DERIVE statements by stream). Raises DefinitionError for double names."""
    metrics: list[MetricDefinition] = []
    derivations: dict[str, list[Statement]] = {}
    named: dict[str, set[str]] = {}
    for stream, statement, _ in read:
        named.setdefault(stream.name, set()).update(each.name for each in statement.items if each.name)
    place_by_name: dict[tuple[str, str], int] = {}
    for i, (stream, statement, loc) in enumerate(read):
        if isinstance(statement, Derivation):
            derivations.setdefault(stream.name, []).append(Statement(statement, loc))
            names = [(item.name, item.name_position) for item in statement.items]
        else:
            made = _metrics(statement, stream, named[stream.name], loc)
            metrics += made
            positions = [item.name_position for item in statement.items]
            names = [(each.name, at) for each, at in zip(made, positions, strict=True)]
        for name, offset in names:
            earlier = place_by_name.setdefault((stream.name, name), i)
            if earlier != i:
                message = f"{name} is the name of a metric of metrics.{earlier} too"
                error = DefinitionError(loc, message, ANOTHER_NAME)
                raise error.in_text(statement.text, offset)
    return metrics, derivations


def definitions_from_sql(sql: object, stream: StreamDefinition, known: Known) -> Definitions:
    """Returns the metrics of one query, or the derived metrics of one DERIVE, about a stream.

    known: the metrics that a DERIVE may read beside the stream's fields.

    Raises DefinitionError with the place in the query.
    """
    loc: Location = ("sql",)
    _, statement = _read(sql, {stream.name: stream}, loc, is_given_for_one=True)
    if isinstance(statement, Derivation):
        return Definitions({}, (), tuple(define_derived([Statement(statement, loc)], stream, known)))
    return Definitions({}, tuple(_metrics(statement, stream, known, loc)))


def _read(
    sql: object,
    streams: Mapping[str, StreamDefinition],
    loc: Location,
    *,
    is_given_for_one: bool = False,
    is_of_file: bool = False,
) -> tuple[StreamDefinition, Query | Derivation]:
    """Parses a statement and finds the stream that it is about.

    is_given_for_one: the statement was sent for the only stream in `streams`. Errors then name no other stream, because
        the sender may have no right to know of it.
    is_of_file: the statement is in a file, which has to have its stream.
    """
    if not isinstance(sql, str):
        raise DefinitionError(loc, "a query is text")
    try:
        statement = parse_statement(sql)
    except QueryError as error:
        raise DefinitionError(loc, str(error)) from error
    name = statement.stream.name
    stream = streams.get(name)
    if stream is not None:
        return stream, statement
    if is_given_for_one:
        (only,) = streams
        message = f"the query is FROM {name[:80]} and was given for stream {only}"
        found = DefinitionError(loc, message, f"write FROM {only}")
        raise found.in_text(sql, statement.stream.position)
    hint = meant(name, streams)
    if is_of_file:
        needed = f"the file needs [streams.{name[:80]}], also if a server has that stream already"
        otherwise = " Otherwise" if hint and hint.endswith("?") else "; otherwise"
        hint = f"{hint}{otherwise} {needed}" if hint else needed
    found = DefinitionError(loc, f"there is no stream {name[:80]!r}", hint)
    raise found.in_text(sql, statement.stream.position)


def _metrics(
    query: Query, stream: StreamDefinition, known: Container[str], loc: Location
) -> list[MetricDefinition]:
    """Returns the metrics of a query. known: the names of the stream's metrics, which a query cannot read."""
    try:
        resolved = resolve(query, stream.readable, stream.name, metrics=known)
    except QueryError as error:
        raise DefinitionError(loc, str(error)) from error
    made = []
    for item, each in zip(query.items, resolved, strict=True):
        try:
            made.append(define_metric(each, stream, loc))
        except DefinitionError as error:
            raise error.in_text(query.text, item.name_position) from None
    return made


def metric_of(metric: MetricDefinition, stream: StreamDefinition) -> MetricDefinition:
    """Returns a metric with a stream's computed fields as they are registered. Their time zones may have other tables.

    Raises DefinitionError.
    """
    if not any(each.name in metric.resolved.names for each in stream.computed):
        return metric
    (made,) = _metrics(parse_query(metric.sql), stream, (), ("sql",))
    return made


def define_metric(resolved: ResolvedMetric, stream: StreamDefinition, loc: Location) -> MetricDefinition:
    """Returns a metric with its home. Raises DefinitionError if it has no home, or has the name of the id's column."""
    name = resolved.name
    check_is_not_id(name, stream.id, loc)
    home = home_partitioner(stream.partitioners, resolved.group_by)
    if home is None:
        choices = " or ".join(stream.partitioners)
        raise DefinitionError(
            loc,
            f"{name} is grouped by {', '.join(resolved.group_by) or 'nothing'} and has no home: stream "
            f"{stream.name} is partitioned by {', '.join(stream.partitioners)}",
            f"add {choices} to its GROUP BY; without it, the stream needs the partitioner {ALL}",
        )
    return MetricDefinition(name, stream.name, resolved.sql, home, resolved)
