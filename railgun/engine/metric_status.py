"""How a metric stands, for people."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MetricStatus:
    """A registered metric. home: the partitioner whose tasks compute it.  warming: some task does not answer yet."""

    name: str
    sql: str
    home: str
    warming: bool
