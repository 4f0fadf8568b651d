"""Makes the nodes of generations that are filled together, in the form in which the interpreter runs them for a fill.

A fill reads stored events into metrics that were added later. Metrics that were added at one time are a generation, and
a node is one (window, filter, group-by) of its program. `fills.py` makes these nodes, and `execution.py` runs them.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from railgun.interpreter import layout as at
from railgun.plan.program import Program
from railgun.task.metrics import Fill


class FillNodes:
    """Nodes that take every row listed for edge 0, and remove none.

    fills: how far the fill of each generation has come. A generation whose fill has not begun may start later than
        the others; it leaves out the rows before its start.
    table: int64[n, NODE_WORDS].
    pairs: int64[p, 3], as `Program.pairs`.
    """

    def __init__(self, program: Program, fills: Mapping[int, Fill]) -> None:
        self.table: npt.NDArray[np.int64] = np.concatenate(
            [program.nodes[slice(*program.nodes_of[generation])] for generation in fills]
        )
        begins = [fill.filled_ms if fill.filled_seq == at.FULL else at.NO_BOUND for fill in fills.values()]
        sizes = [last - first for first, last in (program.nodes_of[generation] for generation in fills)]
        table = self.table
        table[:, at.NODE_AFTER] = np.maximum(table[:, at.NODE_AFTER], np.repeat(begins, sizes))
        table[:, at.NODE_HEAD], table[:, at.NODE_TAIL] = 0, -1
        table[:, [at.NODE_FILLED_TIME, at.NODE_FILLED_SEQ]] = at.FULL
        pairs = table[:, [at.NODE_HEAD, at.NODE_GROUP, at.NODE_ENTITY]]
        self.pairs = np.array(sorted(set(map(tuple, pairs.tolist()))), np.int64).reshape(-1, 3)

    def __len__(self) -> int:
        return len(self.table)
