"""Where the time of an event goes: the processor time of each stage of an engine, beside the least that it could be.

    python -m bench.stages [--only batches single] [--runs N] [--scale F] [--again]

An engine on a folder of its own scores payments as `railgun serve` has it done, from the text of each event to its
reply as JSON. Its window is full, so that as many events leave it as arrive. `batches`: 2,048 events at a time.
`single`: one at a time.

The stages are methods that pass a batch on. Each is timed by the processor time of the thread that scores, without the
stages that it calls. Other threads, which write the log and checkpoints and read ahead, are a line of their own. The
least is what the stage cannot do without, measured here: reading its bytes once, copying them once, or changing a row
of state wherever it lies. docs/benchmarks.md says which. Figures are kept in bench/results/; what is there with the
same parameters, on the same machine, is not measured again. The last line is JSON.
"""

import sys
from functools import partial

from bench.command_line import Case, again_option, measure
from bench.keeping import Keeping
from bench.kept_results import FOLDER, known
from bench.report import Report
from bench.stages.measuring import PARTS, Part, measured


def _case(part: Part) -> Case:
    def case(report: Report) -> None:
        results = known("stages", {"runs": report.runs, "scale": report.scale}, FOLDER)
        keeping = Keeping(results, FOLDER, report.options.again)
        keeping.attempt(part.name, "", partial(measured, part, report.scale, report.runs))
        report.figures |= results.figures

    return case


if __name__ == "__main__":
    cases = {name: _case(part) for name, part in PARTS.items()}
    sys.exit(measure("stages", __doc__, cases, again_option))
