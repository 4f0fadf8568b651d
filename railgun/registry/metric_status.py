"""How registered metrics stand, as plain data."""

from collections.abc import Sequence
from dataclasses import dataclass

from railgun.catalog.registrations import Registrations


@dataclass(frozen=True, slots=True)
class MetricStatus:
    """A registered metric.

    home: the partitioner whose tasks compute it; None of a derived metric.
    warming: whether any task does not answer it yet.
    filled: the share, 0 to 1, of the event time to be read for the fill that has been read. It is that of the task
        with the smallest share.
    outdated_zones: time zones of which this program has other tables than the metric was registered with.
    """

    name: str
    sql: str
    home: str | None
    warming: bool
    filled: float
    outdated_zones: tuple[str, ...] = ()


def with_derived(registered: Registrations, metrics: Sequence[MetricStatus]) -> list[MetricStatus]:
    """The status of a stream's metrics and derived metrics, in the order in which they were added.

    A derived one is warming where a metric that it reads is, and filled as far as the least of these.
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
        )
    return [by_name[name] for name in registered.names if name in by_name]
