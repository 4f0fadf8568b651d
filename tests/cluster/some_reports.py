"""Reports of units, of which a test says what matters to it."""

from typing import Any

import msgspec

from railgun.cluster.copies import CopyState
from railgun.cluster.reports import CopyStatus, UnitReport

TASK = {"stream": "s", "created": 1, "partitioner": "k", "partition": 0}

LEFT_OVER = msgspec.json.encode(
    {
        "version": 1, "node": "node-1", "unit": 0, "generation": 9, **TASK, "state": "running", "processed": 5,
        "replied": 4, "checkpointed": 2, "end": 6, "warming": [],
    }
)  # fmt: skip
"""What a unit reported of one task before tasks had copies."""


def status(**more: Any) -> CopyStatus:
    """Return the status of a copy that answers."""
    said = {**TASK, "state": CopyState.ANSWERING, "position": 1, "replied": 1, "end": 1, **more}
    return CopyStatus(**said)


def report(*copies: CopyStatus, node: str = "node-1", unit: int = 0, **more: Any) -> UnitReport:
    """Return the report of a unit."""
    said = {"generation": 1, "number": 1, "interval_ms": 50, **more}
    return UnitReport(node=node, unit=unit, copies=list(copies), **said)
