"""The experiments of figures 8 to 10 of the Railgun paper, and of two other papers, on this engine.

    python -m bench.paper [--only FIGURE ...] [--runs N] [--scale F] [--again]

A figure takes 75 minutes at most; what does not fit is named as not run. Figures are kept in bench/results/ after
each part; what is there with the same parameters, on the same machine, is not measured again. `python -m bench.publish`
writes and draws them. The last line is JSON. docs/benchmarks.md says what each figure shows.
"""

import sys
from collections.abc import Callable
from functools import partial

from bench.children import ChildFailedError
from bench.command_line import Case, again_option, measure
from bench.keeping import Keeping
from bench.kept_results import FOLDER, known
from bench.paper.budget import Budget, BudgetError
from bench.paper.rates import rates
from bench.paper.recovery import recovery
from bench.paper.table import text_of
from bench.paper.topics import figure8
from bench.paper.units import figure10
from bench.paper.warmed import measured
from bench.paper.windows_work import FIGURES as WINDOW_FIGURES
from bench.paper.windows_work import NOT_MEASURED
from bench.peers.measuring import WrongValuesError
from bench.report import Report

# Returns whether everything that is to be measured has figures.
Experiment = Callable[[Report, Keeping, Budget], bool]


def _windows(figure: str) -> Experiment:
    def windows(report: Report, keeping: Keeping, budget: Budget) -> bool:
        complete = True
        for case in WINDOW_FIGURES[figure](report.scale):
            measuring = partial(measured, figure, case, report.scale, report.runs, budget)
            complete &= keeping.attempt(case.name, "", measuring)
        if figure == "fig9a":
            for name, why in NOT_MEASURED.items():
                keeping.skip(name, why)
        return complete

    return windows


EXPERIMENTS: dict[str, Experiment] = {figure: _windows(figure) for figure in WINDOW_FIGURES} | {
    "fig8": figure8,
    "fig10": figure10,
    "rates": rates,
    "recovery": recovery,
}


def _case(figure: str) -> Case:
    def case(report: Report) -> None:
        results = known(f"paper-{figure}", {"runs": report.runs, "scale": report.scale}, FOLDER)
        failures = (ChildFailedError, BudgetError, WrongValuesError)
        keeping = Keeping(results, FOLDER, report.options.again, failures)
        complete = EXPERIMENTS[figure](report, keeping, Budget())
        results.write(FOLDER)
        print(text_of(results))
        print(FOLDER / results.name)
        report.figures |= {f"{figure}.{key}": value for key, value in results.figures.items()}
        if not complete:
            raise ChildFailedError("parts without figures are named in not_run")

    return case


if __name__ == "__main__":
    sys.exit(measure("paper", __doc__, {figure: _case(figure) for figure in EXPERIMENTS}, again_option))
