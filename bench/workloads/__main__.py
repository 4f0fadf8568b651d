"""Work that others have described, on this engine: events/s, processor time and bytes of an event.

    python -m bench.workloads [--only NAME ...] [--runs N] [--scale F] [--again]

Events and definitions are this project's own; docs/benchmarks.md says what they have in common with the originals.
Figures count only if the values of a sample are exactly the oracle's. They are kept in bench/results/ after each; what
is there with the same parameters, on the same machine, is not measured again. The last line is JSON.
"""

import sys
from functools import partial

from bench.children import Child, ChildFailedError
from bench.command_line import Case, again_option, measure
from bench.keeping import Figures, Keeping
from bench.kept_results import FOLDER, known
from bench.report import Report
from bench.workloads.catalog import WORKLOADS


def _measured(name: str, report: Report) -> Figures:
    """Return the figures of a workload. Raises ChildFailedError."""
    with Child("bench.workloads.child", [name, str(report.scale), str(report.runs)]) as child:
        said = child.answer()
    if why := said.get("not_run"):
        raise ChildFailedError(why)
    figures: Figures = said["figures"]
    return figures


def case(name: str) -> Case:
    """Return what measures a workload, unless it is known."""

    def measuring(report: Report) -> None:
        results = known("workloads", {"runs": report.runs, "scale": report.scale}, FOLDER)
        keeping = Keeping(results, FOLDER, report.options.again)
        if not keeping.attempt(name, "", partial(_measured, name, report)):
            raise ChildFailedError(results.not_run[name])
        report.figures |= results.figures

    return measuring


if __name__ == "__main__":
    sys.exit(measure("workloads", __doc__, {name: case(name) for name in WORKLOADS}, again_option))
