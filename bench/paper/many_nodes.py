"""Computes what many nodes could process, from the processor time of an event on one. No node runs."""

from dataclasses import dataclass

from bench.keeping import Figures
from bench.placing import most_active

NODES = (1, 2, 5, 10, 20, 35, 50)
"""The sizes of clusters in the paper's figure 10."""

UNITS_EACH, CORES_EACH = 8, 16
"""Units and virtual cores of a node there."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The processor time of an event, in µs."""

    frontend_us: float
    unit_us: float
    broker_us: float


def computed(costs: Costs, nodes: int) -> Figures:
    """Return the rate that nodes of UNITS_EACH units could have, a task each, and what brokers would need.

    A unit has a core of its own, and takes it up entirely. The front-ends have the cores that are left on their nodes.
    Brokers are on other machines and hold nobody up. Neither is the network counted, nor how costs grow with a cluster.
    """
    tasks = nodes * UNITS_EACH
    by_units = 1e6 / costs.unit_us * tasks / most_active(nodes, tasks)
    by_frontends = 1e6 / costs.frontend_us * nodes * (CORES_EACH - UNITS_EACH)
    rate = min(by_units, by_frontends)
    return {
        "nodes": float(nodes),
        "computed_events_per_s": rate,
        "computed_events_per_s_of_units": by_units,
        "computed_events_per_s_of_frontends": by_frontends,
        "computed_broker_cores": rate * costs.broker_us / 1e6,
    }
