"""Random histories of a stream: events around its clock, resent ones, and changes in between."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from tests.oracle.definitions import Stream, with_field, without_field
from tests.oracle.paths import read_field
from tests.oracle.steps import (
    AddField,
    AddMetrics,
    AskValues,
    DropField,
    DropMetric,
    Score,
    SetLateness,
    SetRetention,
    Step,
    WarmMetric,
)
from tests.oracle.types import Row, Type, Value
from tests.oracle.values import json_value, to_decimal
from tests.strategies import schemas
from tests.strategies.derivations import DerivationSource
from tests.strategies.queries import QuerySource
from tests.strategies.source import Source
from tests.strategies.values import row, value

# All in the past of whoever runs this, so that no front-end refuses them as too far ahead.
BEGINNINGS_MS = (*[1_700_000_000_000] * 6, 0, 0, -3_600_000, 1_600_000_000_123, -(2**63) + 1_000_000)
PACES_MS = (1, 10, 1_000, 60_000)


@dataclass
class History:
    """Draws steps one after another; keeps what it needs to know of those before.

    registered: what the stream has.  derives, asks_percent, computes: whether derived metrics are added, how many of a
    hundred steps are value queries, and whether computed fields are added.
    """

    source: Source
    queries: QuerySource
    registered: DerivationSource
    metrics: list[str]
    explicit_warm: bool
    derives: bool = False
    asks_percent: int = 0
    computes: bool = False
    clock_ms: int = 0
    pace_ms: int = 1
    resent_percent: int = 0
    sent: list[dict[str, Any]] = field(default_factory=list)
    cold: list[str] = field(default_factory=list)
    fields_added: int = 0
    computed_added: int = 0
    dropped_fields: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock_ms = self.source.choice(BEGINNINGS_MS)
        self.pace_ms = self.source.choice(PACES_MS)
        self.resent_percent = self.source.choice((8, 8, 0, 40))

    @property
    def stream(self) -> Stream:
        """The stream as it is now."""
        return self.registered.catalogue.stream

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
        if self.stream.computed and self.source.chance(10):
            name = self.source.choice(list(self.stream.computed))
            event[name] = value(self.source, self.stream.types[name], time_ms)
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
        metrics = self.registered.catalogue.metrics
        if not metrics:
            return Score(self.event())
        chosen = [self.source.choice(list(metrics)) for _ in range(self.source.integer(1, 2))]
        fields = [name for each in chosen for name in metrics[each].group_by]
        event: dict[str, Any] = {}
        if self.sent and self.source.chance(80):
            event = self.source.choice(self.sent[-50:])
        elif fields:
            event = row(self.source, self.stream.fields, self.clock_ms)
        computed = self._computed(event)
        names = tuple(dict.fromkeys(chosen)) if self.source.chance(30) else None
        return AskValues({name: computed.get(name, event.get(name)) for name in fields}, names)

    def _computed(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """The computed fields of an event, as JSON has them."""
        stream = self.stream
        recorded: Row = {
            name: read_field(event, stream.source(name), declared, name)
            for name, declared in stream.fields.items()
        }
        computed = stream.row({name: each for name, each in recorded.items() if each is not None})
        return {name: _json(computed[name], stream.types[name]) for name in stream.computed}

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
        if self.derives:
            forms += [self.derive, self.drop_metric]
        if self.fields_added < 3:
            forms.append(self.add_field)
        if self.computes and len(self.stream.computed) < 4:
            forms.append(self.add_computed)
        if any(name.startswith("d") for name in self.registered.unread_fields()):
            forms += [self.add_metrics] * 2
        if self.registered.unread_fields():
            forms.append(self.drop_computed)
        if self.cold:
            forms += [self.warm_metric] * 6
        return self.source.choice(forms)()

    def add_metrics(self) -> Step:
        sql, names = self.queries.query(self.stream, items_max=3)
        self.metrics += names
        if self.explicit_warm:
            self.cold += names
        self.registered.take(sql)
        return AddMetrics(sql, warm=not self.explicit_warm)

    def derive(self) -> Step:
        sql, names = self.registered.draw()
        self.registered.take(sql)
        self.metrics += names
        return AddMetrics(sql)

    def warm_metric(self) -> Step:
        """Now and then twice, and for a metric that has been dropped since."""
        name = self.source.choice(self.cold)
        if not self.source.chance(10):
            self.cold.remove(name)
        return WarmMetric(name)

    def drop_metric(self) -> Step:
        droppable = self.registered.droppable(self.metrics)
        if not droppable:
            return self.add_metrics()
        name = self.source.choice(droppable)
        self.metrics.remove(name)
        self.registered.catalogue.drop(name)
        return DropMetric(name)

    def add_field(self) -> Step:
        name, declared = f"g{self.fields_added}", str(schemas.new_field_type(self.source))
        self.fields_added += 1
        self._evolve(with_field(self.stream, name, declared))
        return AddField(name, declared)

    def add_computed(self) -> Step:
        """Mostly under a name that is free again, if there is one."""
        if self.dropped_fields and self.source.chance(60):
            name = self.source.choice(self.dropped_fields)
            self.dropped_fields.remove(name)
        else:
            name = f"d{self.computed_added}"
            self.computed_added += 1
        declared = {"as": schemas.computed_field(self.source, self.stream.types).text}
        self._evolve(with_field(self.stream, name, declared))
        return AddField(name, declared)

    def drop_computed(self) -> Step:
        name = self.source.choice(self.registered.unread_fields())
        self.dropped_fields.append(name)
        self._evolve(without_field(self.stream, name))
        return DropField(name)

    def set_lateness(self) -> Step:
        bound_ms = self.stream.retention_ms
        allowed = [ms for ms in schemas.LATENESS_MS if bound_ms is None or ms <= bound_ms]
        self._evolve(replace(self.stream, lateness_ms=self.source.choice(allowed)))
        return SetLateness(schemas.duration(self.stream.lateness_ms))

    def set_retention(self) -> Step:
        retention_ms = schemas.retention_ms(self.source, self.stream.lateness_ms)
        self._evolve(replace(self.stream, retention_ms=retention_ms))
        return SetRetention(schemas.duration(retention_ms))

    def _evolve(self, stream: Stream) -> None:
        self.registered.catalogue.stream = stream


def _json(value: Value, declared: Type) -> Any:
    """A value of a field as JSON has it."""
    return json_value(to_decimal(value, declared.scale) if isinstance(value, Fraction) else value)
