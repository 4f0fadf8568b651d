"""Random histories of a stream: events around its clock, resent ones, and changes in between."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.oracle.definitions import Stream, with_field
from tests.oracle.steps import (
    AddField,
    AddMetrics,
    AskValues,
    DropMetric,
    Score,
    SetLateness,
    SetRetention,
    Step,
    WarmMetric,
)
from tests.strategies import schemas
from tests.strategies.derivations import DerivationSource
from tests.strategies.queries import QuerySource
from tests.strategies.source import Source
from tests.strategies.values import row

# All in the past of whoever runs this, so that no front-end refuses them as too far ahead.
BEGINNINGS_MS = (*[1_700_000_000_000] * 6, 0, 0, -3_600_000, 1_600_000_000_123, -(2**63) + 1_000_000)
PACES_MS = (1, 10, 1_000, 60_000)


@dataclass
class History:
    """Draws steps one after another; keeps what it needs to know of those before."""

    source: Source
    stream: Stream
    queries: QuerySource
    metrics: list[str]
    explicit_warm: bool
    derivations: DerivationSource | None = None
    asks_percent: int = 0
    clock_ms: int = 0
    pace_ms: int = 1
    resent_percent: int = 0
    sent: list[dict[str, Any]] = field(default_factory=list)
    cold: list[str] = field(default_factory=list)
    fields_added: int = 0

    def __post_init__(self) -> None:
        self.clock_ms = self.source.choice(BEGINNINGS_MS)
        self.pace_ms = self.source.choice(PACES_MS)
        self.resent_percent = self.source.choice((8, 8, 0, 40))

    def step(self, control_percent: int) -> Step:
        """The next step: an event, or with that chance a change, or a value query."""
        if self.asks_percent and self.source.chance(self.asks_percent):
            return self.ask()
        return self.control() if self.source.chance(control_percent) else Score(self.event())

    # --- events

    def event(self) -> dict[str, Any]:
        if self.sent and self.source.chance(self.resent_percent):
            return self.resent()
        time_ms = self.time()
        event = row(self.source, self.stream.fields, time_ms)
        event["ts"] = time_ms
        event["id"] = len(self.sent) if self.stream.fields["id"].kind == "long" else f"e{len(self.sent)}"
        if self.source.chance(5):
            event["unknown"] = {"a": [1, None]}
        for name in self.stream.partitioners:
            if name in self.stream.fields and event.get(name) is None and not self.source.chance(15):
                event[name] = "a" if self.stream.fields[name].kind == "string" else 1
        self.sent.append(event)
        return event

    def resent(self) -> dict[str, Any]:
        """An event sent before, from around the horizon, near or far, as it was or changed under its id."""
        horizon = self.stream.dedup_events + self.source.integer(-1, 1)
        farthest = self.source.choice((horizon, 1, 4, 1_000_000))
        back = horizon if farthest == horizon else self.source.integer(1, farthest)
        event = self.sent[-min(max(back, 1), len(self.sent))]
        if self.source.chance(60):
            return event
        changed = row(self.source, self.stream.fields, self.clock_ms)
        return {**event, **changed, "id": event["id"], "ts": self.time()}

    def time(self) -> int:
        """A time for the next event; the clock goes along where it is ahead of it."""
        lateness_ms = self.stream.lateness_ms
        form = self.source.integer(0, 99)
        if form < 40:
            time_ms = self.clock_ms + self.source.integer(1, 10) * self.pace_ms
        elif form < 65:
            time_ms = self.clock_ms
        elif form < 80:
            time_ms = self.clock_ms - self.source.integer(0, min(lateness_ms, 20 * self.pace_ms))
        elif form < 90:
            time_ms = self.clock_ms - lateness_ms - self.source.choice((0, 1, -1))
        elif form < 96:
            time_ms = self.clock_ms - lateness_ms - self.source.integer(1, 100) * self.pace_ms
        else:
            time_ms = self.clock_ms + self.source.choice((5_000, 60_000, 3_600_000, 86_400_000, 604_800_000))
        time_ms = max(time_ms, -(2**63) + 1)
        self.clock_ms = max(self.clock_ms, time_ms)
        return time_ms

    def ask(self) -> Step:
        """A query for the key of some metrics, mostly of an event sent before; of all that it determines, or some."""
        assert self.derivations is not None
        metrics = self.derivations.catalogue.metrics
        if not metrics:
            return Score(self.event())
        chosen = [self.source.choice(list(metrics)) for _ in range(self.source.integer(1, 2))]
        fields = {name: self.stream.fields[name] for each in chosen for name in metrics[each].group_by}
        event: dict[str, Any] = {}
        if self.sent and self.source.chance(80):
            event = self.source.choice(self.sent[-50:])
        elif fields:
            event = row(self.source, fields, self.clock_ms)
        names = tuple(dict.fromkeys(chosen)) if self.source.chance(30) else None
        return AskValues({name: event.get(name) for name in fields}, names)

    # --- changes

    def control(self) -> Step:
        forms: list[Callable[[], Step]] = [
            self.add_metrics,
            self.add_metrics,
            self.set_lateness,
            self.set_retention,
        ]
        if self.metrics:
            forms.append(self.drop_metric)
        if self.derivations is not None:
            forms += [self.derive, self.drop_metric]
        if self.fields_added < 3:
            forms.append(self.add_field)
        if self.cold:
            forms += [self.warm_metric] * 6
        return self.source.choice(forms)()

    def add_metrics(self) -> Step:
        sql, names = self.queries.query(self.stream, items_max=3)
        self.metrics += names
        if self.explicit_warm:
            self.cold += names
        if self.derivations is not None:
            self.derivations.take(sql)
        return AddMetrics(sql, warm=not self.explicit_warm)

    def derive(self) -> Step:
        assert self.derivations is not None
        sql, names = self.derivations.draw()
        self.derivations.take(sql)
        self.metrics += names
        return AddMetrics(sql)

    def warm_metric(self) -> Step:
        """Now and then twice, and for a metric that has been dropped since."""
        name = self.source.choice(self.cold)
        if not self.source.chance(10):
            self.cold.remove(name)
        return WarmMetric(name)

    def drop_metric(self) -> Step:
        droppable = self.metrics
        if self.derivations is not None:
            droppable = self.derivations.droppable(self.metrics)
        if not droppable:
            return self.add_metrics()
        name = self.source.choice(droppable)
        self.metrics.remove(name)
        if self.derivations is not None:
            self.derivations.catalogue.drop(name)
        return DropMetric(name)

    def add_field(self) -> Step:
        name, declared = f"g{self.fields_added}", str(schemas.new_field_type(self.source))
        self.fields_added += 1
        self.stream = with_field(self.stream, name, declared)
        if self.derivations is not None:
            self.derivations.catalogue.stream = self.stream
        return AddField(name, declared)

    def set_lateness(self) -> Step:
        bound_ms = self.stream.retention_ms
        allowed = [ms for ms in schemas.LATENESS_MS if bound_ms is None or ms <= bound_ms]
        self.stream = replace(self.stream, lateness_ms=self.source.choice(allowed))
        return SetLateness(schemas.duration(self.stream.lateness_ms))

    def set_retention(self) -> Step:
        retention_ms = schemas.retention_ms(self.source, self.stream.lateness_ms)
        self.stream = replace(self.stream, retention_ms=retention_ms)
        return SetRetention(schemas.duration(retention_ms))
