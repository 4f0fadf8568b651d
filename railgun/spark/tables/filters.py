"""Spark's filters on times, offsets and partitions, as bounds that chunks can be left out by."""

import dataclasses
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from railgun.spark.tables.columns import EVENT_TIME, OFFSET, PARTITION
from railgun.spark.tables.options import ALL_PARTITIONS
from railgun.spark.tables.record_log import Bounds
from reservoir.layout import INT64_MAX

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


def narrowed(bounds: Bounds, filters: Iterable[Filter], prefix: str) -> Bounds:
    """The bounds within all filters; those that speak of something else are passed over."""
    for each in filters:
        column = getattr(each, "attribute", ("",))
        if len(column) != 1 or not column[0].startswith(prefix):
            continue
        name = column[0][len(prefix) :]
        if name == EVENT_TIME:
            bounds = _times(bounds, each)
        elif name == OFFSET:
            bounds = _offsets(bounds, each)
        elif name == PARTITION:
            bounds = _partitions(bounds, each)
    return bounds


def _times(bounds: Bounds, each: Filter) -> Bounds:
    value = getattr(each, "value", None)
    if isinstance(value, datetime):
        since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH
        floor = since // _MS
        least, greatest = floor + (1 if since % _MS else 0), floor
    elif isinstance(value, int) and not isinstance(value, bool):
        least = greatest = value
    else:
        return bounds
    # A time of whole milliseconds is at least a finer one iff it is at least the next whole one.
    first, last = bounds.first_ms, bounds.last_ms
    if isinstance(each, EqualTo | GreaterThanOrEqual | GreaterThan):
        first = max(first, least)
    if isinstance(each, EqualTo | LessThanOrEqual | LessThan):
        last = min(last, greatest)
    return dataclasses.replace(bounds, first_ms=first, last_ms=last)


def _offsets(bounds: Bounds, each: Filter) -> Bounds:
    value: Any = getattr(each, "value", None)
    if not isinstance(value, int) or isinstance(value, bool):
        return bounds
    first, last = dict(bounds.first_offset or {}), dict(bounds.last_offset or {})
    first.setdefault(ALL_PARTITIONS, 0)
    last.setdefault(ALL_PARTITIONS, INT64_MAX)
    if isinstance(each, EqualTo | GreaterThanOrEqual | GreaterThan):
        first = {partition: max(offset, value) for partition, offset in first.items()}
    if isinstance(each, EqualTo | LessThanOrEqual | LessThan):
        last = {partition: min(offset, value) for partition, offset in last.items()}
    return dataclasses.replace(bounds, first_offset=first, last_offset=last)


def _partitions(bounds: Bounds, each: Filter) -> Bounds:
    if isinstance(each, EqualTo) and isinstance(each.value, int):
        wanted = frozenset({each.value})
    elif isinstance(each, In) and all(isinstance(value, int) for value in each.value):
        wanted = frozenset(each.value)
    else:
        return bounds
    known = bounds.partitions
    return dataclasses.replace(bounds, partitions=wanted if known is None else known & wanted)
