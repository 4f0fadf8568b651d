"""Peers with a known fault, for the tests of the harness: `python -m tests.bench.planted_peer FAULT TASK`."""

import sys
from dataclasses import replace

from bench.peers.dict_deque import DictDeque
from bench.peers.protocol import Task, serve


def _longer(by_ms: int, task: Task) -> DictDeque:
    return DictDeque(replace(task, windows_ms=tuple(each + by_ms for each in task.windows_ms)))


if __name__ == "__main__":
    fault = sys.argv.pop(1)
    if fault == "ends":
        sys.exit(3)
    serve(lambda task: _longer({"holds_both_ends": 1, "too_long": 1_000, "right": 0}[fault], task))
