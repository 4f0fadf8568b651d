"""Finds nodes and units that are gone for good. Pure: times are handed in.

The leader deletes their records; front-ends forget them. A unit is a process of a node that runs tasks.
"""

from dataclasses import dataclass

from railgun.cluster.copies import CopyName
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.plan import Plan
from railgun.cluster.silence import GONE_MS


@dataclass(frozen=True, slots=True)
class Departed:
    """The nodes and units that are gone. A unit may be gone alone: its node then has fewer units than before."""

    nodes: frozenset[str] = frozenset()
    units: frozenset[CopyName] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.nodes or self.units)


def departed(observed: ObservedCluster, plan: Plan, now_ms: int) -> Departed:
    """Return the nodes that are neither members nor in the plan and have said nothing for a day. Return also the units
    that have reported, but that no remaining node has any more.

    A node that an operator has ordered to be emptied is kept until the order is taken back, so that the operator still
    sees it.
    now_ms: ms since 1970.
    """
    planned = plan.units
    kept = observed.members | {copy.node for copy in planned} | {*plan.drains}
    gone = {
        name
        for name, record in observed.nodes.items()
        if name not in kept and now_ms - record.said_ms > GONE_MS
    }
    left = {name: record.units for name, record in observed.nodes.items() if name not in gone}
    units = {
        unit
        for unit in observed.reports.units()
        # The record of a member of the group may still be on its way.
        if unit.unit >= left.get(unit.node, 0)
        and unit not in planned
        and (unit.node in left or unit.node not in kept)
    }
    return Departed(frozenset(gone), frozenset(units))
