"""Fills new metrics from the reservoir, in slices between live batches. `TaskProcessor.work` calls it.

Metrics that need the same events are filled together. An event is then read, and the row of its entity looked up, once
for all of them.
"""

from collections.abc import Sequence
from typing import NamedTuple

from railgun.language.ast import WindowKind
from railgun.language.resolve import ResolvedMetric
from railgun.plan.program import TIME_MAX, TIME_MIN
from railgun.task.fill_nodes import FillNodes
from railgun.task.metrics import Fill
from railgun.task.plan_runtime import FIRST_FILL_SET, subtract_clamped
from railgun.task.view import TaskView

# Reading a row costs as much as running it through this many nodes. So a slice has fewer rows if it is for more
# nodes.
_NODES_LIKE_A_ROW = 32
# After this many attempts in a row that find the next chunk not decoded, the slice decodes it itself.
_ASKED_MAX = 200


class _Pass(NamedTuple):
    """One pass through the reservoir's rows, which fills several generations (metrics that were added together).

    cursor: the number of the fill in the reservoir.
    delay_ms: the delay of the windows of all its generations.
    generations: their numbers.
    nodes: the parts of the program that take the rows.
    """

    cursor: int
    delay_ms: int
    generations: Sequence[int]
    nodes: FillNodes


class FillWork:
    """The fills of one task that are under way. It does one slice at a time.

    One generation *leads*: its fill goes from its present position to its end. Others of the same delay are filled
    with it if they stand at the same position, or if they have not begun and start later. A generation that starts
    earlier waits. Then the one that is furthest back leads, so no generation waits for more than one other pass.
    """

    def __init__(self, task: TaskView) -> None:
        self._task = task
        self._leader: int | None = None
        self._pass: _Pass | None = None
        self._asked = 0

    @property
    def waiting(self) -> bool:
        """Whether any metric is not completely filled."""
        return any(not fill.full for fill in self._task.metrics.fills.values())

    def stop(self) -> None:
        """Close the cursor. Its position is kept with the metrics."""
        if self._pass is not None:
            self._task.reservoir.fill_close(self._pass.cursor)
            self._pass = None

    def start(self) -> None:
        """Set the start of new fills after the program was rebuilt: a new fill starts at the bound of its metrics."""
        waiting = self._waiting()
        fresh = {generation: fill for generation, fill in waiting.items() if fill.filled_ms == TIME_MIN}
        members = self._task.metrics.members() if fresh else {}
        for generation, fill in fresh.items():
            start_ms = max(self._start_ms(members[generation]), fill.after_ms)
            fill.filled_ms, fill.filled_seq, fill.start_ms = start_ms, TIME_MAX, start_ms
        self._task.runtime.mark_filled(waiting)

    def step(self, share: int = 1) -> bool:
        """Do one slice of filling, or a share of one. Returns whether there was anything to fill.

        A share waits until what it reads has been decoded in the background. A whole slice decodes it itself.
        """
        if not self.waiting:
            return False
        if share == 1 or self._is_ready():
            self._slice(max(1, self._task.settings.fill_rows_max // share), ready_only=share > 1)
        return True

    def finish(self, generation: int) -> None:
        """Complete the fill of a generation before returning."""
        fill = self._task.metrics.fills[generation]
        if not fill.full and (self._pass is None or generation not in self._pass.generations):
            self.stop()
            self._leader = generation
        while not fill.full:
            self._slice(self._task.settings.fill_rows_max)

    def _waiting(self) -> dict[int, Fill]:
        return {number: fill for number, fill in self._task.metrics.fills.items() if not fill.full}

    def _is_ready(self) -> bool:
        """Whether a pass has begun, and the chunk that it reads next has been decoded.

        A decoded chunk may be evicted before it is read. After some attempts this returns True, so that the slice
        decodes it.
        """
        had_started = self._pass is not None
        is_ready = self._task.reservoir.fill_is_ready(self._begun().cursor) and had_started
        self._asked = 0 if is_ready else self._asked + 1
        return is_ready or self._asked > _ASKED_MAX

    def _begun(self) -> _Pass:
        """Return the pass that is under way. If there is none, begin one."""
        self._task.metrics.close_generation()
        if self._pass is None:
            self._pass = self._begin()
        return self._pass

    def _slice(self, rows_max: int, *, ready_only: bool = False) -> None:
        task = self._task
        cursor, delay_ms, generations, nodes = self._begun()
        fills = {number: task.metrics.fills[number] for number in generations}
        clock_ms = task.admission.clock_ms
        rows = max(1, rows_max * _NODES_LIKE_A_ROW // (_NODES_LIKE_A_ROW - 1 + len(nodes)))
        found = task.reservoir.fill_next(
            cursor, rows, subtract_clamped(clock_ms, delay_ms), ready_only=ready_only
        )
        if found.count:
            log = task.reservoir.changelog
            log.start[:] = log.end[:] = 0
            log.end[0] = found.count
            task.runtime.execution.bind_changelog(log)
            task.runtime.execution.fill(nodes, clock_ms)
            stands = task.reservoir.fill_position(cursor)
            for fill in fills.values():
                fill.filled_ms, fill.filled_seq = max((fill.filled_ms, fill.filled_seq), stands)
        if found.done:
            for fill in fills.values():
                fill.filled_ms = fill.filled_seq = TIME_MAX
            self.stop()
        task.runtime.mark_filled(fills)

    def _begin(self) -> _Pass:
        """Begin a pass of the leading generation, and of those that are filled with it."""
        task, waiting = self._task, self._waiting()
        if self._leader not in waiting:
            self._leader = min(waiting, key=lambda number: _stands(waiting[number]))
        delays_ms = {number: each[0].window.delay_ms for number, each in task.metrics.members().items()}
        stands, delay_ms = _stands(waiting[self._leader]), delays_ms[self._leader]
        together = {
            number: fill
            for number, fill in waiting.items()
            if delays_ms[number] == delay_ms
            and (_stands(fill) == stands or (fill.filled_seq == TIME_MAX and _stands(fill) > stands))
        }
        runtime = task.runtime
        task.reservoir.set_columns(FIRST_FILL_SET, runtime.fill_columns(together))
        cursor = task.reservoir.fill_open(*stands, FIRST_FILL_SET)
        return _Pass(cursor, delay_ms, tuple(together), FillNodes(runtime.program, together))

    def _start_ms(self, members: Sequence[ResolvedMetric]) -> int:
        """Return a time at or before which no event is in any window of a generation, in ms."""
        clock_ms = self._task.admission.clock_ms
        starts: list[int] = []
        for metric in members:
            window = metric.window
            if window.kind is WindowKind.INFINITE or window.size_ms is None:
                starts.append(TIME_MIN)
                continue
            head_ms = subtract_clamped(clock_ms, window.delay_ms)
            if window.kind is WindowKind.SLIDING:
                starts.append(subtract_clamped(head_ms, window.size_ms))
            else:
                starts.append(subtract_clamped(head_ms // window.size_ms * window.size_ms, 1))
        return min(starts)


def _stands(fill: Fill) -> tuple[int, int]:
    return fill.filled_ms, fill.filled_seq
