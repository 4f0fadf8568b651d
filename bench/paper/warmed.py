"""Measures a case of figure 9 in a process of its own, within a budget."""

import statistics

from bench.children import Child
from bench.keeping import Figures, spread
from bench.paper.budget import Budget, check_disk
from bench.paper.windows_work import Case


def measured(figure: str, case: Case, scale: float, runs: int, budget: Budget) -> Figures:
    """Fill the windows of a case, and measure it some times. Returns medians, and spreads of what is compared.

    Raises BudgetError, ChildFailedError.
    """
    check_disk(case.disk_bytes)
    budget.check_time()
    filling = Budget(case.fill_s)
    with Child("bench.paper.warm_child", [figure, case.name, str(scale)]) as child:
        while "ready" not in (said := child.answer()):
            budget.check_time()
            filling.check_time()
        found = []
        for _ in range(runs):
            budget.check_time()
            found.append(child.ask())
    medians = {key: float(statistics.median(each[key] for each in found)) for key in found[0]}
    return {
        **medians,
        **spread("events_per_s", [each["events_per_s"] for each in found]),
        **spread("p999_ms", [each["p999_ms"] for each in found]),
        "edges": float(said["edges"]),
        "filled_events": float(case.fill),
        "measured_events": float(case.workload.measured),
    }
