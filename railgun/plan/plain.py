"""Which simple nodes are plain: nothing but the count of events, and count and sum of one column of doubles."""

from collections.abc import Sequence

from railgun.aggregators import codes
from railgun.interpreter import layout as at

_CELLS = {codes.COUNT: at.NODE_PLAIN_COUNT, codes.SUM_DOUBLE: at.NODE_PLAIN_SUM}


def note_plain(node: list[int], updates: Sequence[Sequence[int]], results: Sequence[Sequence[int]]) -> None:
    """Fill in the NODE_PLAIN words of a simple node that is plain."""
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
    outs = dict.fromkeys(
        (at.NODE_PLAIN_OUT_ALL, at.NODE_PLAIN_OUT_COUNT, at.NODE_PLAIN_OUT_SUM, at.NODE_PLAIN_OUT_AVG), -1
    )
    for op in results:
        place = {
            codes.RESULT_SUM_DOUBLE: at.NODE_PLAIN_OUT_SUM,
            codes.RESULT_AVG_DOUBLE: at.NODE_PLAIN_OUT_AVG,
        }.get(op[at.RESULT_OP])
        if op[at.RESULT_OP] == codes.RESULT_COUNT:
            of_all = op[at.RESULT_CELL] == found[at.NODE_PLAIN_ALL]
            place = at.NODE_PLAIN_OUT_ALL if of_all else at.NODE_PLAIN_OUT_COUNT
        if place is None or outs[place] >= 0:
            return
        outs[place] = op[at.RESULT_OUT]
    for place, value in (found | outs).items():
        node[place] = value
    node[at.NODE_PLAIN] = 1
