"""New metrics fill themselves from the reservoir, in slices between live batches (decision 10)."""

from railgun.interpreter import layout as at
from railgun.language.ast import WindowKind
from railgun.language.resolve import ResolvedMetric
from railgun.plan.program import TIME_MAX, TIME_MIN
from railgun.task.machine import FIRST_FILL_SET, less
from railgun.task.view import TaskView

_SETS_MAX = 255


class FillWork:
    """The fills under way in one task, in the order of their generations, one slice at a time."""

    def __init__(self, task: TaskView) -> None:
        self._task = task
        self._cursors: dict[int, int] = {}

    @property
    def waiting(self) -> bool:
        """Is there a metric that is not full yet?"""
        return any(not fill.full for fill in self._task.metrics.fills.values())

    def stop(self) -> None:
        """Close the cursors; where they stood is kept with the metrics."""
        for cursor in self._cursors.values():
            self._task.reservoir.fill_close(cursor)
        self._cursors.clear()

    def start(self) -> None:
        """After a rebuild: a fill that has just come into being begins at the bound of its metrics."""
        for generation, fill in self._task.metrics.fills.items():
            if not fill.full and fill.filled_ms == TIME_MIN:
                fill.filled_ms, fill.filled_seq = self._start_ms(generation), TIME_MAX
            if not fill.full:
                self._mark(generation)

    def step(self, share: int = 1) -> bool:
        """One slice, or a share of one, of the first fill that is not full. False: there was none."""
        for generation, fill in self._task.metrics.fills.items():
            if not fill.full:
                self._slice(generation, max(1, self._task.settings.fill_rows_max // share))
                return True
        return False

    def finish(self, generation: int) -> None:
        """Fill a generation to its end, now."""
        while not self._task.metrics.fills[generation].full:
            self._slice(generation, self._task.settings.fill_rows_max)

    def _slice(self, generation: int, rows_max: int) -> None:
        task = self._task
        fill, reservoir = task.metrics.fills[generation], task.reservoir
        task.metrics.close_generation()
        cursor = self._cursor(generation)
        clock_ms = task.admission.clock_ms
        up_to_ms = less(clock_ms, self._members(generation)[0].window.delay_ms)
        found = reservoir.fill_next(cursor, rows_max, up_to_ms)
        if found.count:
            log = reservoir.changelog
            log.start[:] = log.end[:] = 0
            log.end[0] = found.count
            task.machine.execution.bind_changelog(log)
            task.machine.execution.fill(generation, clock_ms)
            fill.filled_ms, fill.filled_seq = reservoir.fill_position(cursor)
        if found.done:
            fill.filled_ms = fill.filled_seq = TIME_MAX
            reservoir.fill_close(self._cursors.pop(generation))
        self._mark(generation)

    def _cursor(self, generation: int) -> int:
        cursor = self._cursors.get(generation)
        if cursor is None:
            task = self._task
            fill = task.metrics.fills[generation]
            column_set = FIRST_FILL_SET + len(self._cursors) % _SETS_MAX
            task.reservoir.set_columns(column_set, task.machine.fill_columns(generation))
            cursor = task.reservoir.fill_open(fill.filled_ms, fill.filled_seq, column_set)
            self._cursors[generation] = cursor
        return cursor

    def _mark(self, generation: int) -> None:
        """Tell the program how far the fill has come."""
        fill, program = self._task.metrics.fills[generation], self._task.machine.program
        first, last = program.nodes_of[generation]
        program.nodes[first:last, at.NODE_FILLED_TIME] = fill.filled_ms
        program.nodes[first:last, at.NODE_FILLED_SEQ] = fill.filled_seq

    def _members(self, generation: int) -> list[ResolvedMetric]:
        metrics = self._task.metrics.by_name.values()
        return [metric.definition.resolved for metric in metrics if metric.generation == generation]

    def _start_ms(self, generation: int) -> int:
        """Nothing at or before this is in any window of the generation."""
        clock_ms = self._task.admission.clock_ms
        starts: list[int] = []
        for metric in self._members(generation):
            window = metric.window
            if window.kind is WindowKind.INFINITE or window.size_ms is None:
                starts.append(TIME_MIN)
                continue
            head_ms = less(clock_ms, window.delay_ms)
            if window.kind is WindowKind.SLIDING:
                starts.append(less(head_ms, window.size_ms))
            else:
                starts.append(less(head_ms // window.size_ms * window.size_ms, 1))
        return max(min(starts), self._task.metrics.fills[generation].after_ms)
