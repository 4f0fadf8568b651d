"""A cluster at a glance: how many nodes, units and tasks there are, how they fare, what waits."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from frontend.exchange.pending_table import Waiting
from frontend.kafka.positions import NOT_RUN


def at_a_glance(
    tasks: Sequence[Mapping[str, Any]], waiting: Waiting, log_retention_ms: int | None
) -> dict[str, Any]:
    """What `Positions.tasks` says of all tasks, added up; and what this front-end waits for.

    log_retention_ms: of new streams; where it is set, tasks that no other node has cannot be rebuilt wholly.
    """
    states = Counter(str(task["state"]).partition(":")[0] for task in tasks)
    units: dict[str, set[int]] = {}
    for task in tasks:
        if task["state"] not in NOT_RUN:
            units.setdefault(task["node"], set()).add(task["unit"])
    return {
        "nodes": [{"node": node, "units": sorted(own)} for node, own in sorted(units.items())],
        "tasks": dict(sorted(states.items())),
        "lag": sum(task["lag"] for task in tasks),
        "unreadable_records": sum(task["unreadable_records"] for task in tasks),
        "log_retention_ms": log_retention_ms,
        "pending_events": waiting.events,
        "pending_oldest_s": round(waiting.oldest_s(), 3),
    }
