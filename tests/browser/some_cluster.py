"""A cluster in every state that the console shows, without a broker: it takes orders, late or not at all."""

import asyncio
import copy as copying
from typing import Any

from frontend.embedded.backend import EmbeddedBackend
from frontend.problems import refusal

HOSTILE = (
    '<img src=x onerror="window.ran = 1"><script>window.ran = 1</script>\u202egnp.exe\0</code>&amp;\'"\u2028'
)
"""What would run if it were HTML, turns the direction of what follows, and has characters that are not seen."""


def node(name: str, **more: Any) -> dict[str, Any]:
    own = {"name": name, "state": "live", "alive": True, "rack": "a", "units": 2, "active": 0, "copies": 0}
    return {**own, "release": "0.1.0", "host": f"{name}.example.com", **more}


def copy(node: str, state: str | None, lag: int | None = 0, unit: int = 0, **more: Any) -> dict[str, Any]:
    return {"node": node, "unit": unit, "state": state, "lag": lag, "planned": True, **more}


def task(partition: int, *copies: dict[str, Any], partitioner: str = "card") -> dict[str, Any]:
    return {
        "stream": "payments",
        "partitioner": partitioner,
        "partition": partition,
        "copies": list(copies),
        "log": None,
    }


def fetching(fetched: int, total: int, donor: str | None = "node-1/0", hashed: int = 0) -> dict[str, Any]:
    return {"donor": donor, "fetched_bytes": fetched, "total_bytes": total, "hashed_bytes": hashed}


ENDED = {
    "unit": 1,
    "times": 5,
    "last_ms": 1_700_000_000_000,
    "error": "No space left on device",
    "text": "unit 1 of node-2 ended 5 times in the last 10 minutes; last: No space left on device",
}
NODES = [
    node("node-1", active=3, copies=4),
    node("node-2", active=1, copies=4, rack="b", refused="1 node would be left for 2 copies", ended=[ENDED]),
    node("node-3", state="away", alive=False, copies=2, rack="c", lost=2, heard_ms=1_700_000_000_000),
]
TASKS = [
    {
        **task(0, copy("node-1", "answering"), copy("node-2", "silent", unit=1)),
        "wrong": ["node-3 has lost its copy"],
    },
    task(1, copy("node-1", "answering", unit=1), copy("node-2", "behind", 1_204)),
    task(2, copy("node-2", "answering"), copy("node-1", "behind", 48_000)),
    task(
        3,
        copy("node-1", "answering"),
        copy("node-2", "behind", 7_000_000, fetching=fetching(340_000_000, 1_000_000_000)),
    ),
    task(0, copy("node-1", "failed", failure="no space left on device"), partitioner="merchant"),
    task(3, copy("node-1", "answering"), copy("node-2", "silent"), partitioner="merchant"),
    task(
        1,
        copy("node-3", None, None),
        copy("node-2", "behind", 9, fetching=fetching(0, 0, None)),
        partitioner="merchant",
    ),
    task(
        2,
        copy("node-3", "closed", None),
        copy("node-1", "silent", planned=False, unit=1),
        partitioner="merchant",
    ),
]
WARNINGS = [
    str(ENDED["text"]),
    "nobody answers 3 tasks: payments/merchant/0, payments/merchant/1, payments/merchant/2",
]


def happening(kind: str, text: str, at_ms: int = 1_700_000_000_000) -> dict[str, Any]:
    return {"kind": kind, "at_ms": at_ms, "first_ms": at_ms, "times": 1, "text": text}


SINCE_MS, LOOKED_MS = 1_699_999_000_000, 1_700_000_100_000
LATELY = [
    happening("copy_made", "1 copy was made on node-1: payments/card/2"),
    happening("copy_failed", "payments/card/2 on node-3/0 failed: TaskFolderError: a file is in its place"),
    happening(
        "node_lost", "node-3 was lost: it fell silent without closing its copies; node-1 took over 2 tasks"
    ),
]


class SomeCluster:
    """`ClusterOperations` that answers as it is told. orders: those that were given.

    overview_s, order_s: how long an answer takes.  refused: why an order is refused.
    nodes, tasks, warnings, lately: what is shown.  looks: whether it is looked at.
    """

    def __init__(self) -> None:
        self.orders: list[tuple[str, str, bool]] = []
        self.overview_s = self.order_s = 0.0
        self.refused, self.looks = "", True
        self.nodes, self.tasks, self.warnings = copying.deepcopy((NODES, TASKS, WARNINGS))
        self.lately = copying.deepcopy(LATELY)

    async def overview(self) -> dict[str, Any]:
        await asyncio.sleep(self.overview_s)
        states = [each["state"] for found in self.tasks for each in found["copies"]]
        return {
            "leader": "node-1",
            "plan": 12,
            "copies": 2,
            "moves": 3,
            "warnings": self.warnings,
            "behind": states.count("behind"),
            "unheard": states.count(None),
            "lately": {
                "since_ms": SINCE_MS,
                "looked_ms": LOOKED_MS,
                "overdue": not self.looks,
                "entries": self.lately,
            },
            "nodes": self.nodes,
            "tasks": self.tasks,
        }

    async def what_if(self, change: str) -> dict[str, Any]:
        made = {
            "stream": "payments",
            "partitioner": "card",
            "partition": 0,
            "node": "node-3",
            "unit": 0,
            "bytes": 10**9,
        }
        return {
            "what_if": change,
            "moves": 1,
            "made": [{**made, "source": "copies"}] * 4,
            "dropped": 4,
            "bytes": 4 * 10**9,
            "not_made": [f"payments/card/0: {HOSTILE}"],
            "nodes": [],
        }

    async def drain(self, node: str, *, fewer_copies: bool) -> dict[str, Any]:
        return await self._order("drain", node, "draining", fewer_copies=fewer_copies)

    async def undrain(self, node: str) -> dict[str, Any]:
        return await self._order("undrain", node, "live")

    async def _order(
        self, order: str, node: str, state: str, *, fewer_copies: bool = False
    ) -> dict[str, Any]:
        self.orders.append((order, node, fewer_copies))
        await asyncio.sleep(self.order_s)
        if self.refused:
            raise refusal(409, self.refused)
        found = next(each for each in self.nodes if each["name"] == node)
        found["state"] = state
        return found


class ShownBackend(EmbeddedBackend):
    """An engine of this process that says it is such a cluster."""

    def __init__(self, *opening: Any, **more: Any) -> None:
        super().__init__(*opening, **more)
        self.cluster = SomeCluster()  # type: ignore[assignment]
