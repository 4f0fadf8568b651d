"""The metrics of a task and their states: added, filling (old events are read into it), warm (it answers) or dropped.

`TaskProcessor` changes them by the control records of its log, and checkpoints keep them. It does no I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from railgun.catalog.changes import AddMetric, Warm, change_from_json, change_to_json
from railgun.catalog.model import MetricDefinition, StreamDefinition
from railgun.language.ast import WindowKind
from railgun.language.resolve import ResolvedMetric
from railgun.plan.program import TIME_MAX, TIME_MIN, Generation


@dataclass(frozen=True, slots=True)
class LiveMetric:
    """A metric in a task.

    definition: what it is.
    added: the number of the catalogue's change that added it.
    generation: the metrics of one generation are filled together.
    after_ms: the retention bound R at its `add` record; TIME_MIN if the task had accepted nothing. Its fill has only
        events after this time, because older ones may be deleted.
    warm: whether it answers. It does once the `warm` record of the log has come, after its fill.
    """

    definition: MetricDefinition
    added: int
    generation: int
    after_ms: int
    warm: bool

    def reaches_back(self, bound_ms: int, clock_ms: int) -> bool:
        """Whether its window, at this clock, begins at or before a time."""
        window = self.definition.resolved.window
        if window.kind is WindowKind.INFINITE or window.size_ms is None:
            return True
        at = clock_ms - window.delay_ms
        if window.kind is WindowKind.TUMBLING:
            return (at // window.size_ms) * window.size_ms <= bound_ms
        return at - window.size_ms < bound_ms


@dataclass(slots=True)
class Fill:
    """How far the fill of a generation has come: the reading of old events for metrics that were added together.

    after_ms: only events after this time are read.
    filled_ms, filled_seq: the time and the position of the last event that was added; TIME_MAX once full.
    durable: whether a committed checkpoint has the finished fill.
    start_ms: where it began, or where it stood when the task was opened; TIME_MAX before it has begun.
    """

    after_ms: int
    filled_ms: int
    filled_seq: int
    durable: bool = False
    start_ms: int = field(default=TIME_MAX, compare=False)

    @property
    def full(self) -> bool:
        """Whether every event up to its head has been added."""
        return self.filled_ms == TIME_MAX


@dataclass(slots=True)
class TaskMetrics:
    """All metrics of one task by name, in the order in which they were added, and their fills by generation."""

    by_name: dict[str, LiveMetric] = field(default_factory=dict)
    fills: dict[int, Fill] = field(default_factory=dict)
    last_place: int = 0
    open_generation: tuple[int, int, int] | None = (
        None  # (generation, delay, place) that a next `add` may join
    )
    # These are read for every batch, so they are cached until `by_name` changes.
    _warming: tuple[str, ...] | None = field(default=None, repr=False, compare=False)
    _has_bounds: bool | None = field(default=None, repr=False, compare=False)

    def add(self, change: AddMetric, *, has_accepted: bool, retained_ms: int) -> bool:
        """Add a metric. Returns whether it has to be filled."""
        window = change.metric.resolved.window
        if not has_accepted:
            self._put(LiveMetric(change.metric, change.place, 0, TIME_MIN, True))
            self.fills.setdefault(0, Fill(TIME_MIN, TIME_MAX, TIME_MAX, True))
            return False
        joined = self.open_generation
        if (
            joined is not None
            and joined[1] == window.delay_ms
            and self.fills[joined[0]].after_ms == retained_ms
        ):
            generation = joined[0]
        else:
            generation = change.place
        # The fill counts as not begun. If a start was computed for the metrics already in the generation, it may be
        # too late for this one.
        self.fills[generation] = Fill(retained_ms, TIME_MIN, TIME_MIN)
        self.open_generation = generation, window.delay_ms, change.place
        self._put(LiveMetric(change.metric, change.place, generation, retained_ms, False))
        return True

    def drop(self, name: str, added: int) -> bool:
        """Drop a metric. Returns whether it was there."""
        metric = self.by_name.get(name)
        if metric is None or metric.added != added:
            return False
        del self.by_name[name]
        self._warming = self._has_bounds = None
        if all(other.generation != metric.generation for other in self.by_name.values()):
            self.fills.pop(metric.generation, None)
        self.open_generation = None
        return True

    def warming_of(self, warm: Warm) -> LiveMetric | None:
        """Return the metric that a `warm` record is for; None if it was dropped, replaced or warm already."""
        metric = self.by_name.get(warm.name)
        return None if metric is None or metric.added != warm.added or metric.warm else metric

    def warm(self, metric: LiveMetric) -> None:
        """Make a metric warm."""
        self._put(replace(metric, warm=True))

    def _put(self, metric: LiveMetric) -> None:
        """Store a metric. If it replaces another one of the same name, it keeps the place of that in the order."""
        self.by_name[metric.definition.name] = metric
        self._warming = self._has_bounds = None

    def close_generation(self) -> None:
        """End the open generation, because an event was accepted or a fill has begun. Metrics that are added later
        get another one.
        """
        self.open_generation = None

    def generations(self) -> list[Generation]:
        """Return the generations from which the program is built, generation 0 first."""
        members = self.members()
        return [
            Generation(number, tuple(members[number]), fill.after_ms, fill.filled_ms, fill.filled_seq)
            for number, fill in sorted(self.fills.items())
            if number in members
        ]

    def members(self) -> dict[int, list[ResolvedMetric]]:
        """Return the metrics of each generation, in the order in which they were added."""
        found: dict[int, list[ResolvedMetric]] = {}
        for metric in self.by_name.values():
            found.setdefault(metric.generation, []).append(metric.definition.resolved)
        return found

    @property
    def has_bounds(self) -> bool:
        """Whether any metric may lack events of long ago."""
        if self._has_bounds is None:
            self._has_bounds = any(metric.after_ms > TIME_MIN for metric in self.by_name.values())
        return self._has_bounds

    @property
    def warming(self) -> tuple[str, ...]:
        """The names of the metrics that do not answer yet."""
        if self._warming is None:
            self._warming = tuple(name for name, metric in self.by_name.items() if not metric.warm)
        return self._warming

    def ready_to_warm(self) -> list[LiveMetric]:
        """Return the warming metrics whose finished fill is in a durable checkpoint."""
        return [m for m in self.by_name.values() if not m.warm and self.fills[m.generation].durable]

    def to_json(self) -> dict[str, Any]:
        """Return the content for a checkpoint."""
        return {
            "last_place": self.last_place,
            "metrics": [
                {
                    "change": change_to_json(AddMetric(m.added, m.definition)),
                    "generation": m.generation,
                    "after_ms": m.after_ms,
                    "warm": m.warm,
                }
                for m in self.by_name.values()
            ],
            "fills": {str(g): [f.after_ms, f.filled_ms, f.filled_seq] for g, f in self.fills.items()},
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any], streams: Mapping[str, StreamDefinition]) -> "TaskMetrics":
        """Restore what `to_json` returned. A fill that is full there is durable, because the checkpoint
        was durable.
        """
        metrics = cls(last_place=body["last_place"])
        for number, (after_ms, filled_ms, filled_seq) in body["fills"].items():
            metrics.fills[int(number)] = Fill(
                after_ms, filled_ms, filled_seq, filled_ms == TIME_MAX, filled_ms
            )
        for entry in body["metrics"]:
            change = change_from_json(entry["change"], streams)
            assert isinstance(change, AddMetric)
            metrics._put(
                LiveMetric(change.metric, change.place, entry["generation"], entry["after_ms"], entry["warm"])
            )
        return metrics
