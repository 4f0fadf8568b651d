"""The figures of a bench by key, and the lines that show them to people."""

import statistics
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from bench.children import Child

Measured = dict[str, list[dict[str, Any]]]


@dataclass(slots=True)
class Report:
    """The figures of one run of a bench.

    runs: of each measurement.  scale: of events and seconds; 1 is a whole run.  options: of the command line.
    not_run: why a figure or a case is missing, by its name.
    """

    runs: int
    scale: float
    figures: dict[str, float] = field(default_factory=dict)
    options: Namespace = field(default_factory=Namespace)
    not_run: dict[str, str] = field(default_factory=dict)

    def note(self, key: str, values: Sequence[float], digits: int = 0, remark: str = "") -> None:
        """Note a figure, the median of values, and print it with the spread."""
        middle = statistics.median(values)
        self.figures[key] = round(middle, digits) if digits else round(middle)
        spread = f"{min(values):,.{digits}f} .. {max(values):,.{digits}f}, {len(values)} runs"
        print(f"{key:28}{middle:>14,.{digits}f}   ({spread}){remark}", flush=True)

    def note_missing(self, key: str, why: str) -> None:
        """Say why a figure or a case is missing."""
        self.not_run[key] = why
        print(f"{key}: not measured: {why}", file=sys.stderr, flush=True)

    def in_turn(self, workloads: Sequence[str], runs: int | None = None) -> Measured:
        """Warm up a process for each of the workloads, then measure them in turn."""
        found: Measured = {name: [] for name in workloads}
        with ExitStack() as stack:
            children: dict[str, Child] = {}
            for name in workloads:
                child = Child("bench.unit_child", [name, str(self.scale)])
                children[name] = stack.enter_context(child)
                child.answer()
            for _ in range(runs or self.runs):
                for name, child in children.items():
                    found[name].append(child.ask())
        return found
