"""The status of registered metrics, as plain data. The engine and front-ends show it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from railgun.catalog.model import MetricDefinition
from railgun.catalog.registrations import Registrations


@dataclass(frozen=True, slots=True)
class MetricStatus:
    """The status of a registered metric.

    home: the partitioner whose tasks compute it; None if it is a derived metric.
    warming: whether any task does not answer it yet.
    filled: the share of the past that has been read, from 0 to 1, in the task that is least far.
    outdated_zones: time zones of which this program has other tables than when the metric was registered.
    key: the fields that a key has to name for a value query to be answered it, sorted; None if no key is enough,
        because it reads fields of an event.
    """

    name: str
    sql: str
    home: str | None
    warming: bool
    filled: float
    outdated_zones: tuple[str, ...] = ()
    key: tuple[str, ...] | None = ()

    @classmethod
    def of(cls, metric: MetricDefinition, *, warming: bool, filled: float) -> Self:
        """Return the status of a metric of a query."""
        resolved = metric.resolved
        return cls(
            metric.name,
            metric.sql,
            metric.home,
            warming,
            filled,
            resolved.outdated_zones,
            resolved.group_by,
        )


def with_derived(registered: Registrations, metrics: Sequence[MetricStatus]) -> list[MetricStatus]:
    """Return the status of a stream's metrics and derived metrics, in the order in which they were added.

    A derived metric is warming while any metric that it reads is. Its `filled` is the least of theirs.
    """
    by_name = {each.name: each for each in metrics}
    for name, each in registered.derived.items():
        operands = [by_name[operand] for operand in each.operands if operand in by_name]
        by_name[name] = MetricStatus(
            name,
            each.sql,
            None,
            any(operand.warming for operand in operands),
            min((operand.filled for operand in operands), default=1.0),
            each.outdated_zones,
            None
            if each.event_fields
            else tuple(sorted({name for read in operands for name in read.key or ()})),
        )
    return [by_name[name] for name in registered.names if name in by_name]


def filled_with_derived(registered: Registrations, filled: Mapping[str, float]) -> dict[str, float]:
    """Return how far a stream's warming metrics and derived metrics are, by name, as `with_derived` would say it.

    filled: of the metrics that are warming, how far each is.
    """
    found = {name: share for name, share in filled.items() if registered.find(name) is not None}
    for name, each in registered.derived.items():
        shares = [found[operand] for operand in each.operands if operand in found]
        if shares:
            found[name] = min(shares)
    return found
