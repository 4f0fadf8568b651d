"""The metrics of a query, for tests that have a stream and no catalogue."""

from collections.abc import Mapping

from railgun.catalog.definitions import definitions_from_sql
from railgun.catalog.model import MetricDefinition, StreamDefinition
from railgun.language.parser import parse_query


def metrics_from_sql(sql: str, streams: Mapping[str, StreamDefinition]) -> list[MetricDefinition]:
    """One per select item. streams: among them the one that the query names."""
    stream = streams[parse_query(sql).stream.name]
    return list(definitions_from_sql(sql, stream, {}).metrics)
