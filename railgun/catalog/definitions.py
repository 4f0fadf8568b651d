"""Definitions files (TOML): streams and metrics, checked; and metrics from the SQL of a request."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from railgun.catalog.errors import DefinitionError, Location, meant
from railgun.catalog.model import (
    ALL,
    Definitions,
    MetricDefinition,
    StreamDefinition,
    home_partitioner,
)
from railgun.catalog.names import check_metric_name
from railgun.catalog.stream_reading import stream_from_table
from railgun.catalog.tables import Table
from railgun.language.errors import QueryError
from railgun.language.parser import parse_query
from railgun.language.resolve import ResolvedMetric, resolve

FILE_LIMIT_BYTES = 16 * 1024 * 1024


_NOT_HERE = "the file has to define it: begin with its [streams.NAME] as it is registered"


def load_definitions(path: Path | str) -> Definitions:
    """Read a definitions file. Raises DefinitionError, with the file's name, and OSError."""
    file = Path(path)
    if file.stat().st_size > FILE_LIMIT_BYTES:
        raise DefinitionError((), f"larger than {FILE_LIMIT_BYTES} bytes", file=str(path))
    try:
        return parse_definitions(file.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DefinitionError((), f"no UTF-8 at byte {error.start}", file=str(path)) from None
    except DefinitionError as error:
        raise error.in_file(str(path)) from None


def parse_definitions(text: str) -> Definitions:
    """Streams and metrics of a definitions file's text. Raises DefinitionError."""
    try:
        root = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DefinitionError((), f"no TOML: {error}") from None
    except RecursionError:
        raise DefinitionError((), "no definitions: nested too deep") from None
    table = Table(root, (), ("streams", "metrics"))
    bodies = table.get("streams") or {}
    if not isinstance(bodies, Mapping):
        raise DefinitionError(("streams",), "tables belong here, as in [streams.payments]")
    streams = {name: stream_from_table(name, body, ("streams", name)) for name, body in bodies.items()}
    return Definitions(streams, _metrics(table.get("metrics"), streams))


def _metrics(entries: object, streams: Mapping[str, StreamDefinition]) -> tuple[MetricDefinition, ...]:
    if entries is None:
        return ()
    if not isinstance(entries, list):
        raise DefinitionError(("metrics",), "a list of tables belongs here, as in [[metrics]]")
    metrics: list[MetricDefinition] = []
    place_by_name: dict[tuple[str, str], int] = {}
    for i, entry in enumerate(entries):
        loc: Location = ("metrics", i, "sql")
        sql = Table(entry, ("metrics", i), ("sql",)).required("sql", "a query")
        for metric in metrics_from_sql(sql, streams, loc, remedy=_NOT_HERE):
            earlier = place_by_name.setdefault((metric.stream, metric.name), i)
            if earlier != i:
                raise DefinitionError(
                    loc,
                    f"{metric.name} is the name of a metric of metrics.{earlier} too",
                    "give one of them another name with AS",
                )
            metrics.append(metric)
    return tuple(metrics)


def metrics_from_sql(
    sql: object,
    streams: Mapping[str, StreamDefinition],
    loc: Location = ("sql",),
    only: str | None = None,
    remedy: str = "",
) -> list[MetricDefinition]:
    """The metrics of one query, one per select item. only: the stream that it must be of, if it must.  remedy: said
    where there is no such stream.

    Raises DefinitionError with the place in the query.
    """
    if not isinstance(sql, str):
        raise DefinitionError(loc, "a query is text")
    try:
        query = parse_query(sql)
        name = query.stream.name
        if only is not None and name != only:
            other = f", or give it for {name}" if name in streams else ""
            message = f"the query is FROM {name[:80]} and was given for stream {only}"
            raise DefinitionError(loc, message, f"write FROM {only}{other}")
        stream = streams.get(name)
        if stream is None:
            hint = "; ".join(filter(None, (meant(name, streams), remedy)))
            raise DefinitionError(loc, f"there is no stream {name[:80]!r}", hint or None)
        return [define_metric(each, stream, loc) for each in resolve(query, stream.types, stream.name)]
    except QueryError as error:
        raise DefinitionError(loc, str(error)) from error


def define_metric(resolved: ResolvedMetric, stream: StreamDefinition, loc: Location) -> MetricDefinition:
    """A metric with its home, its name checked. Raises DefinitionError."""
    name = check_metric_name(resolved.name, stream.id, loc)
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
