"""Which metrics lack events of long ago, in which rows of a batch (docs/semantics.md: Life of a metric)."""

from collections.abc import Sequence

import numpy as np

from railgun.plan.program import TIME_MIN
from railgun.task.admission import Admitted
from railgun.task.metrics import LiveMetric, TaskMetrics
from railgun.wire.reply import Partial


def partials_of(
    metrics: TaskMetrics, names: Sequence[str], admitted: Admitted, n: int, least_ms: int
) -> list[Partial]:
    """The partial metrics of a batch; least_ms: the least time accepted before it.

    A warm metric is partial in a row where an event at or before its bound has been accepted by then and its
    window begins at or before that bound.
    """
    accepted = admitted.accepted[:n] != 0
    least_after = least_ms
    if admitted.count:
        least_after = min(least_ms, int(admitted.time_ms[:n][accepted].min()))
    found: list[Partial] = []
    for index, name in enumerate(names):
        metric = metrics.by_name[name]
        if not metric.warm or metric.after_ms == TIME_MIN or least_after > metric.after_ms:
            continue
        first = 0
        if least_ms > metric.after_ms:
            first = int(np.flatnonzero(accepted & (admitted.time_ms[:n] <= metric.after_ms))[0])
        behind = _rows_reaching_back(metric, admitted, n)
        if behind > first:
            found.append(Partial(index, metric.after_ms, first, behind))
    return found


def _rows_reaching_back(metric: LiveMetric, admitted: Admitted, n: int) -> int:
    """How many rows from the first have a window that begins at or before the bound: the clock only grows."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if metric.reaches_back(int(admitted.clock_ms[middle])):
            low = middle + 1
        else:
            high = middle
    return low
