"""Decides about orders to empty a node (drains): whether the cluster follows each. `next_plan` calls it.

It does no I/O.
"""

from collections.abc import Mapping
from dataclasses import replace

from railgun.cluster.plan import Drain, Plan
from railgun.cluster.records import DrainOrder
from railgun.cluster.view import ClusterView
from railgun.wording import counted


def decided(plan: Plan, view: ClusterView) -> Mapping[str, Drain]:
    """Return by node the decision on the order to empty it.

    A decision stands until there is another order for the node.

    plan: the present plan.
    """
    orders = {node: order for node, order in view.orders.items() if order.is_on}
    drains = {
        node: drain
        for node, drain in plan.drains.items()
        if node in orders and orders[node].asked_ms == drain.asked_ms
    }
    for node, order in sorted(orders.items(), key=lambda item: item[1].asked_ms):
        before = plan.drains.get(node)
        if node not in drains and before is not None and not before.refusal:
            # The node is being emptied already. One more order does not take that back.
            drains[node] = replace(before, asked_ms=order.asked_ms)
        elif node not in drains:
            refusal = _refusal(order, view, drains)
            drains[node] = Drain(order.asked_ms, order.fewer_copies, refusal)
    return drains


def with_drains(view: ClusterView, plan: Plan) -> ClusterView:
    """Return a view in which nodes that are being emptied are not open, so that no copies are placed there."""
    nodes = [
        replace(each, node=replace(each.node, is_open=not plan.is_drained(each.node.name)))
        for each in view.nodes
    ]
    return replace(view, nodes=nodes)


def _refusal(order: DrainOrder, view: ClusterView, drains: Mapping[str, Drain]) -> str:
    """Return why an order cannot be followed; empty if it can be."""
    emptied = {node for node, drain in drains.items() if not drain.refusal}
    usable = [each for each in view.nodes if each.node.units and each.node.name not in emptied]
    able = {each.node.name for each in usable}
    # A node that is away may come back. Until then it takes over no tasks.
    left = {each.node.name for each in usable if each.is_alive} - {order.node}
    # It is unknown or has no units: no task has to be taken over.
    if order.node not in able:
        return ""
    if not left:
        return "no other node that lives could take over its tasks; start or add one first"
    if len(left) < min(view.policy.copies, len(able)) and not order.fewer_copies:
        return (
            f"{counted(len(left), 'node')} would be left for {view.policy.copies} copies of each task; add a node "
            "first, or let tasks have fewer copies (--fewer-copies)"
        )
    return ""
