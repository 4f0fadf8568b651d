"""Figures of two sides that were measured in turn, and their ratios, pair by pair."""

import re
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Figures = Mapping[str, float]

# Names of figures end with their unit, which "_at_500" or the like may follow.
_LOWER_IS_BETTER = re.compile(r"(^|_)(s|ms|us|mib|rss|p999_ratio|waits)(_|$)")


def lower_is_better(figure: str) -> bool:
    """Whether a figure is a time, a size, a ratio of latencies or a number of waits, by its name."""
    return _LOWER_IS_BETTER.search(figure) is not None


@dataclass(slots=True)
class Pairs:
    """The figures of two sides.

    sides: the names of both.  values: by figure, both sides' values in each run.
    missing: why a figure, workload or case could not be compared, by its name.
    """

    sides: tuple[str, ...]
    values: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def add(self, base: Figures, new: Figures) -> None:
        """Add the figures that both sides measured in one run."""
        for figure in [*base, *(each for each in new if each not in base)]:
            lacking = [side for side, of in zip(self.sides, (base, new), strict=True) if figure not in of]
            if lacking:
                self.missing[figure] = f"{lacking[0]} has no such figure"
            elif not base[figure]:
                self.missing[figure] = f"{self.sides[0]} measured 0"
            else:
                self.values.setdefault(figure, []).append((base[figure], new[figure]))

    def update(self, others: "Pairs") -> None:
        """Take over the pairs of other figures."""
        self.values |= others.values
        self.missing |= others.missing

    def print_lines(self) -> None:
        """Print a line for each figure; and to stderr, the figures that could not be compared."""
        for figure, values in self.values.items():
            base, new = medians_of(values)
            ratios = ratios_of(values)
            remark = ", lower is better" if lower_is_better(figure) else ""
            print(
                f"{figure:32}{base:>12,.4g} -> {new:>12,.4g}   ratio {statistics.median(ratios):.3f} "
                f"({min(ratios):.3f} .. {max(ratios):.3f}, {len(ratios)} pairs){remark}",
                flush=True,
            )
        for what, why in self.missing.items():
            print(f"{what}: not compared: {why}", file=sys.stderr, flush=True)

    def summary(self) -> dict[str, Any]:
        """Return the last line: ratio and medians by figure, the figures that are better if lower, the missing ones."""
        medians = {figure: medians_of(values) for figure, values in self.values.items()}
        return {
            "figures": {
                figure: round(statistics.median(ratios_of(values)), 4)
                for figure, values in self.values.items()
            },
            "medians": {figure: [float(f"{each:.6g}") for each in both] for figure, both in medians.items()},
            "lower_is_better": [figure for figure in self.values if lower_is_better(figure)],
            "not_compared": self.missing,
        }


def ratios_of(values: Sequence[tuple[float, float]]) -> list[float]:
    """Return what this tree's value is of the revision's, pair by pair."""
    return [new / base for base, new in values]


def medians_of(values: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the median of the revision's values, and that of this tree's."""
    return statistics.median(base for base, _ in values), statistics.median(new for _, new in values)
