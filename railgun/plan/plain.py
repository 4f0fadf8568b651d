"""Finds simple nodes that are *plain*: they only count events, and count the values of one column and sum doubles.

A node is one (window, filter, group-by) of the plan. `railgun/plan/program.py` has plain nodes marked in the program,
and `railgun/interpreter/plain.py` runs them.
"""

from collections.abc import Sequence

from railgun.aggregators import codes
from railgun.interpreter import layout as at

# In the order of the NODE_PLAIN_OUT words.
_RESULTS = {codes.RESULT_COUNT: 0, codes.RESULT_SUM_DOUBLE: 2, codes.RESULT_AVG_DOUBLE: 3}
_CELLS = {codes.COUNT: at.NODE_PLAIN_COUNT, codes.SUM_DOUBLE: at.NODE_PLAIN_SUM}


def note_plain(
    node: list[int],
    updates: Sequence[Sequence[int]],
    results: Sequence[Sequence[int]],
    before: Sequence[Sequence[int]],
) -> None:
    """Set the NODE_PLAIN words of a simple node that is plain. before: its results of EXCLUDE CURRENT."""
    found = dict.fromkeys((at.NODE_PLAIN_ALL, at.NODE_PLAIN_COUNT, at.NODE_PLAIN_SUM), 0)
    columns: set[int] = set()
    for number, op in enumerate(updates):
        place = _CELLS.get(op[at.UPDATE_OP])
        if op[at.UPDATE_COLUMN] < 0:
            place = at.NODE_PLAIN_ALL
        else:
            columns.add(op[at.UPDATE_COLUMN])
            node[at.NODE_PLAIN_OP] = number
        if place is None or found[place]:
            return
        found[place] = op[at.UPDATE_CELL]
    if len(columns) > 1 or (found[at.NODE_PLAIN_SUM] and not found[at.NODE_PLAIN_COUNT]):
        return
    outs = _outputs(results, found[at.NODE_PLAIN_ALL], at.NODE_PLAIN_OUT_ALL)
    outs_before = _outputs(before, found[at.NODE_PLAIN_ALL], at.NODE_PLAIN_BEFORE_ALL)
    if outs is None or outs_before is None:
        return
    for place, value in (found | outs | outs_before).items():
        node[place] = value
    node[at.NODE_PLAIN] = 1


def _outputs(results: Sequence[Sequence[int]], cell_of_all: int, first: int) -> dict[int, int] | None:
    """By word of the node, from `first` on, the outputs of count(*), count, sum and average; -1 for those it lacks.

    None if the node has another result, or two of one kind.
    """
    outs = dict.fromkeys(range(first, first + 4), -1)
    for op in results:
        kind = _RESULTS.get(op[at.RESULT_OP])
        if kind == 0 and op[at.RESULT_CELL] != cell_of_all:
            kind = 1
        if kind is None or outs[first + kind] >= 0:
            return None
        outs[first + kind] = op[at.RESULT_OUT]
    return outs
