"""count_distinct for every event, from the times at which each value enters the window and leaves it.

A value is in the window while at least one of its events is. Each event enters (+1) and leaves (-1). Where the count of
a value goes from 0 to 1, or back, the number of distinct values changes. All numbers are whole, and so exact.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame

from railgun.language.ast import Window
from railgun.spark.validation.admission import ACCEPTED_MS
from railgun.spark.validation.run_source import NUMBER
from railgun.spark.validation.translate import quoted
from railgun.spark.validation.windows import EVENT_BLOCK, HEAD, ORDER_NUMBER, ORDER_TIME, placed

_DELTA, _HELD, _IS_QUERY = "delta", "held", "is_query"
_ROWS = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


def with_distinct(
    events: DataFrame,
    group: Sequence[str],
    window: Window,
    column: str,
    carried: Sequence[str],
    *,
    excludes_current: bool,
) -> DataFrame:
    """Return a row for each event: `carried`, and `<column>_distinct`, the number of distinct values in its window."""
    at = placed(events, window)
    changes = _changes(at, group, window, column)
    others = [name for name in carried if name != NUMBER]
    queries = at.selectExpr(
        *group,
        f"{HEAD} AS {ORDER_TIME}",
        f"{NUMBER} AS {ORDER_NUMBER}",
        f"1 AS {_IS_QUERY}",
        f"0 AS {_DELTA}",
        *map(quoted, others),
    )
    rows = queries.unionByName(changes, allowMissingColumns=True)
    # With EXCLUDE CURRENT the row that queries comes before the row by which the event enters.
    order = f"{ORDER_TIME}, {ORDER_NUMBER}, {_IS_QUERY}" + (" DESC" if excludes_current else "")
    over = f"OVER (PARTITION BY {', '.join(group) or '1'} ORDER BY {order} {_ROWS})"
    counted = rows.selectExpr("*", f"CAST(sum({_DELTA}) {over} AS BIGINT) AS {column}_distinct")
    return counted.where(f"{_IS_QUERY} = 1").selectExpr(
        f"{ORDER_NUMBER} AS {NUMBER}", *map(quoted, others), f"{column}_distinct"
    )


def _changes(at: DataFrame, group: Sequence[str], window: Window, column: str) -> DataFrame:
    """Return the changes of the number of distinct values of a group: where, and by how much."""
    if window.size_ms is None:
        leaves = "CAST(NULL AS BIGINT)"
    elif window.kind == "tumbling":
        leaves = f"try_multiply({EVENT_BLOCK} + 1, {window.size_ms}L)"
    else:
        leaves = f"try_add({ACCEPTED_MS}, {window.size_ms}L)"
    counted = at.where(f"{ACCEPTED_MS} IS NOT NULL AND {column} IS NOT NULL").selectExpr(
        *group, column, f"{ORDER_TIME} AS enters", ORDER_NUMBER, f"{leaves} AS leaves"
    )
    # An event that leaves before it is seen is never in the window.
    steps = counted.where("leaves IS NULL OR leaves > enters").selectExpr(
        *group,
        column,
        "explode(array(struct(enters AS at, "
        f"{ORDER_NUMBER} AS o, 1 AS delta), struct(leaves AS at, -2L AS o, -1 AS delta))) AS step",
    )
    steps = steps.where("step.at IS NOT NULL").selectExpr(
        *group, column, f"step.at AS {ORDER_TIME}", f"step.o AS {ORDER_NUMBER}", "step.delta AS step"
    )
    over = f"OVER (PARTITION BY {', '.join([*group, column])} ORDER BY {ORDER_TIME}, {ORDER_NUMBER}, step {_ROWS})"
    held = steps.selectExpr("*", f"sum(step) {over} AS {_HELD}")
    return held.where(f"{_HELD} + CASE WHEN step < 0 THEN 1 ELSE 0 END = 1").selectExpr(
        *group, ORDER_TIME, ORDER_NUMBER, f"0 AS {_IS_QUERY}", f"step AS {_DELTA}"
    )
