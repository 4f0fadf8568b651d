"""Work that others have described, on this engine: events/s, processor time and bytes of an event.

    python -m bench.workloads [--only NAME ...] [--runs N] [--scale F]

Events and definitions are this project's own; docs/benchmarks.md says what they have in common with the originals.
Figures count only if the values of a sample are exactly the oracle's. They are kept in bench/results/. The last line is
JSON.
"""

import sys

from bench.children import Child, ChildFailedError
from bench.command_line import Case, measure
from bench.peers.results import FOLDER, known
from bench.report import Report
from bench.workloads.catalog import WORKLOADS


def _case(name: str) -> Case:
    def case(report: Report) -> None:
        kept = known({"runs": report.runs, "scale": report.scale}, FOLDER, "workloads")
        with Child("bench.workloads.child", [name, str(report.scale), str(report.runs)]) as child:
            said = child.answer()
        if why := said.get("not_run"):
            kept.note_missing(name, why)
            kept.write(FOLDER)
            raise ChildFailedError(why)
        kept.note(name, "", said["figures"])
        kept.write(FOLDER)
        for key, value in said["figures"].items():
            report.figures[f"{name}.{key}"] = value
            print(f"{name + '.' + key:48}{value:>16,.6g}", flush=True)

    return case


if __name__ == "__main__":
    sys.exit(measure("workloads", __doc__, {name: _case(name) for name in WORKLOADS}))
