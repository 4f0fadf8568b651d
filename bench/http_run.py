"""The measurements of the HTTP bench: one server under load."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.children import ChildFailedError
from bench.load.injector import Injection, inject
from bench.load.latencies import Latencies, merged
from bench.load.order import Order
from bench.load.outcome import Outcome
from bench.load.schedule import Phase, Schedule
from bench.load.search import highest_rate, holds_below
from bench.payments import Payments
from bench.service import Service
from bench.threads import used

PATH = "/v1/streams/payments/events"
_METRICS = "/v1/streams/payments/metrics"
LIMIT_P999_MS = 100.0

_BULK_LINES, _BULK_CONNECTIONS, _BULK_RUN_VALUES = 5_000, 4, 2_500_000
_BULK_SECONDS_MAX = 600.0
CONNECTIONS = 128
_SETTLE_S = 1.0
_STEADY_SECONDS_MAX, _STATUS_S = 120.0, 0.25
_RATE_MAX_PER_S = 100_000
# Each request for warming metrics takes the server's interpreter for a moment, so it must not come too often.
_SLICE_S, _WARM_POLL_S = 0.5, 0.25


def added(place: int) -> str:
    """Return the name of a metric that is registered under load."""
    return f"added_{place}"


@dataclass(slots=True)
class Target:
    """A server that is ready, and how far in the sequence of payments it has come."""

    service: Service
    payments: Payments
    sent_events: int = 0

    def order(
        self, schedule: Schedule, *, each: int = 1, connections: int = CONNECTIONS, grace_s: float = 10.0
    ) -> Order:
        """Return the order for the next events on a schedule. Several in a request go as lines."""
        order = Order(
            self.service.host,
            self.service.port,
            PATH,
            schedule,
            self.payments,
            self.sent_events,
            each,
            ndjson=each > 1,
            connections=connections,
            grace_s=grace_s,
            ca=self.service.ca,
        )
        self.sent_events += order.events
        return order

    def bulk(self, events: int, *, connections: int = _BULK_CONNECTIONS) -> float:
        """Send at least so many events as lines, as fast as they are answered. Return events/s; raise ChildFailedError.

        connections: with several, whole requests overtake each other, and thousands of events that are late then count
        at one millisecond: an edge of a window passes them at one event.
        """
        seconds, answered = 0.0, 0
        while answered < events:
            at_once = min(events - answered, _BULK_RUN_VALUES // self.payments.fields)
            requests = max(connections, at_once // _BULK_LINES)
            order = self.order(
                Schedule.burst(requests),
                each=_BULK_LINES,
                connections=connections,
                grace_s=_BULK_SECONDS_MAX,
            )
            found = inject(order)
            check(found)
            answered += found.good
            seconds += (found.last_done_ns - found.first_sent_ns) / 1e9
        return answered / seconds

    def cpu_us(self, do: Callable[[], object]) -> float:
        """Return the server's CPU time per event while `do` runs, in µs. Other programs disturb it less than a rate."""
        events, cpu_s = self.sent_events, self.service.cpu_s()
        do()
        return (self.service.cpu_s() - cpu_s) / max(1, self.sent_events - events) * 1e6

    def steady(self, rate_per_s: float, seconds: float) -> "Singles":
        """Send single events at a rate, and measure them. Raises ChildFailedError if one was not answered well."""
        return self._measured(self.order(Schedule.constant(rate_per_s, seconds)))

    def one_by_one(self, events: int) -> "Singles":
        """Send single events over one connection, each when the one before is answered, and measure them."""
        order = self.order(Schedule.burst(events), connections=1, grace_s=_BULK_SECONDS_MAX)
        return self._measured(order, from_send=True)

    def _measured(self, order: Order, *, from_send: bool = False) -> "Singles":
        before = used(self.service.pid)
        found = inject(order)
        after = used(self.service.pid)
        check(found)
        latencies = found.from_send if from_send else found.latencies
        return Singles(latencies, {key: (after[key] - before[key]) / order.events for key in after})

    def singles(self, rate_per_s: float, seconds: float) -> Outcome:
        """Send single events at a rate, and return the outcome."""
        return inject(self.order(Schedule.constant(rate_per_s, seconds)))

    def max_rate(self, seconds: float) -> float:
        """Return the highest rate of single events, held for so long, with p99.9 below LIMIT_P999_MS, none refused."""
        return highest_rate(
            lambda rate_per_s: holds_below(self.singles(rate_per_s, seconds), LIMIT_P999_MS, _SETTLE_S),
            _RATE_MAX_PER_S,
        )

    def with_metrics_added(
        self,
        sqls: Sequence[str],
        rate_per_s: float,
        before_s: float,
        rest_s: float,
        *,
        every_s: float | None = None,
    ) -> "Added":
        """Single events at a rate, and after a while metrics, each registered by a request of its own.

        sqls: that of each; what it selects is called as `added` says.  every_s: one after so long each; one that
        answers is dropped before the next, so that events do not become dearer. Without it they are registered as fast
        as is answered, and stay.
        """
        registered: list[float] = []

        def add() -> None:
            begun_s = time.monotonic()
            for place, sql in enumerate(sqls):
                self.service.ask("POST", _METRICS, {"sql": sql})
                if every_s is not None:
                    self._await_warm()
                    self.service.ask("DELETE", f"{_METRICS}/{added(place)}")
                    time.sleep(max(0.0, begun_s + (place + 1) * every_s - time.monotonic()))
            registered.append(time.monotonic() - begun_s)
            self._await_warm()

        found = self.while_doing(add, rate_per_s, before_s, rest_s)
        return Added(found.before_ms, found.during_ms, found.after_ms, registered[0], found.seconds)

    def _await_warm(self) -> None:
        while any(each["warming"] for each in self.service.ask("GET", _METRICS)["metrics"]):
            time.sleep(_WARM_POLL_S)

    def while_doing(
        self, do: Callable[[], object], rate_per_s: float, before_s: float, rest_s: float
    ) -> "Beside":
        """Single events at a rate, and after a while something done beside them. rest_s: from then to the end."""
        slices = round(rest_s / _SLICE_S)
        schedule = Schedule(
            (
                Phase(round(rate_per_s * before_s), before_s),
                *(Phase(round(rate_per_s * _SLICE_S), _SLICE_S) for _ in range(slices)),
            )
        )
        injection = Injection(self.order(schedule))
        try:
            start_ns = injection.start()
            time.sleep(max(0.0, (start_ns - time.monotonic_ns()) / 1e9 + before_s))
            begun_s = time.monotonic()
            do()
            seconds = time.monotonic() - begun_s
        except BaseException:
            injection.stop()
            raise
        found = injection.outcome()
        check(found)
        doing = 1 + math.ceil(seconds / _SLICE_S)
        parts = found.by_phase[:1], found.by_phase[1:doing], found.by_phase[doing:]
        before, during, after = (merged(each).quantile_ms(0.999) for each in parts)
        greatest_ms = merged(parts[1]).greatest_ms if parts[1] else math.nan
        return Beside(before, during, after, greatest_ms, seconds)

    def killed(self, rate_per_s: float, lines: int, steady_s: float) -> float:
        """Kill the server under a rate, in requests of so many lines, so many seconds after a checkpoint has become
        durable that began under this rate; start it again: the seconds until it is ready.
        """
        schedule = Schedule.constant(rate_per_s / lines, _STEADY_SECONDS_MAX + steady_s)
        injection = Injection(self.order(schedule, each=lines, connections=8))
        try:
            start_ns = injection.start()
            time.sleep(max(0.0, (start_ns - time.monotonic_ns()) / 1e9))
            self._await_checkpoint()
            time.sleep(steady_s)
            self.service.kill()
        finally:
            injection.stop()
        return self.service.start()

    def _await_checkpoint(self) -> None:
        """Wait until all events that were sent are in a durable checkpoint. Raises ChildFailedError."""
        sent = {each["partition"]: each["position"] for each in self._tasks()}
        deadline_s = time.monotonic() + _STEADY_SECONDS_MAX
        while any(each["checkpoint"] < sent[each["partition"]] for each in self._tasks()):
            if time.monotonic() > deadline_s:
                raise ChildFailedError(f"railgun serve: no checkpoint within {_STEADY_SECONDS_MAX:g} s")
            time.sleep(_STATUS_S)

    def _tasks(self) -> list[dict[str, int]]:
        """Return the states of the tasks of the one stream and its one partitioner."""
        (stream,) = self.service.ask("GET", "/v1/status")["streams"]
        tasks: list[dict[str, int]] = stream["tasks"]
        return tasks


@dataclass(frozen=True, slots=True)
class Singles:
    """The latencies of single events, and what the server used for each, by the keys of `bench.threads.used`."""

    latencies: Latencies
    used: dict[str, float]


@dataclass(frozen=True, slots=True)
class Beside:
    """p99.9 of live events before something was done, while it was, and after that (NaN where the load ended sooner);
    the slowest of those meanwhile; and how long it took.
    """

    before_ms: float
    during_ms: float
    after_ms: float
    greatest_ms: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Added:
    """p99.9 of live events before metrics were registered, from then until all were warm, and after that (NaN where the
    load ended sooner); how long registering took, and until all were warm.
    """

    before_ms: float
    during_ms: float
    after_ms: float
    registered_s: float
    warm_s: float


def check(found: Outcome) -> None:
    """Check that every event was answered well. Raises ChildFailedError."""
    if found.bad:
        raise ChildFailedError(
            f"{found.bad} of {found.events} events were not answered well: {dict(found.status)}"
        )
