"""A cluster of one machine under load by its input topic: the measurements that the end-to-end bench is made of."""

import os
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.children import ChildFailedError
from bench.http_run import CONNECTIONS, PATH, check
from bench.kafka import running_local_broker
from bench.load.injector import Injection, inject
from bench.load.order import Order
from bench.load.outcome import Outcome
from bench.load.schedule import Phase, Schedule
from bench.load.search import highest_rate, holds_below
from bench.payments import Payments
from bench.service import Service
from bench.unit_cases import Workload
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.registry.topics import PREFIX, Topics

LIMIT_P999_MS = 250.0
_STREAM = "payments"
_SETTLE_S, _GRACE_S = 2.0, 20.0
_RATE_MAX_PER_S = 100_000
_BULK_VALUES = 5_000_000
_SLICE_S, _NORMAL_MS = 0.5, 50.0


@dataclass(slots=True)
class Cluster:
    """Front-end, node and broker that are ready, and how far in the sequence of payments they have come.

    broker: its address.  broker_pid: its process.
    """

    service: Service
    broker: str
    stem: str
    payments: Payments
    sent_events: int = 0
    broker_pid: int = 0

    def order(self, schedule: Schedule, *, by_topic: bool, grace_s: float = _GRACE_S) -> Order:
        """Return the order for the next events on a schedule, each sent by itself."""
        host, _, port = self.broker.rpartition(":")
        if by_topic:
            where = (host, int(port), self.stem)
        else:
            where = (self.service.host, self.service.port, PATH)
        order = Order(
            *where,
            schedule,
            self.payments,
            self.sent_events,
            connections=CONNECTIONS,
            grace_s=grace_s,
            is_topic=by_topic,
        )
        self.sent_events += order.events
        return order

    def at(self, rate_per_s: float, seconds: float, *, by_topic: bool = True) -> Outcome:
        """Send events at a rate, and return the outcome. Raises ChildFailedError if one was not answered."""
        found = inject(self.order(Schedule.constant(rate_per_s, seconds), by_topic=by_topic))
        check(found)
        return found

    def steady(
        self, rate_per_s: float, settled_s: float, seconds: float, *, by_topic: bool = True
    ) -> Outcome:
        """Send events as `at` does, once Java has compiled for this load: after the first `settled_s`.

        The page cache is written to the disk first. Two gigabytes of an earlier search, which the kernel writes half a
        minute later, would disturb this measurement.
        """
        os.sync()
        self.at(rate_per_s, settled_s, by_topic=by_topic)
        return self.at(rate_per_s, seconds, by_topic=by_topic)

    def bulk(self, events: int) -> float:
        """Send at least so many events by the topic, as fast as they are answered. Returns events/s."""
        seconds, answered = 0.0, 0
        while answered < events:
            burst = Schedule.burst(min(events - answered, _BULK_VALUES // self.payments.fields))
            found = inject(self.order(burst, by_topic=True, grace_s=600.0))
            check(found)
            answered += found.good
            seconds += (found.last_done_ns - found.first_sent_ns) / 1e9
        return answered / seconds

    def max_rate(self, seconds: float) -> float:
        """Return the highest rate by the topic whose p99.9 stays below LIMIT_P999_MS for this many seconds."""
        return highest_rate(
            lambda rate_per_s: holds_below(
                inject(self.order(Schedule.constant(rate_per_s, seconds), by_topic=True)),
                LIMIT_P999_MS,
                _SETTLE_S,
            ),
            _RATE_MAX_PER_S,
        )

    def normal_after_burst_s(
        self, low_per_s: float, high_per_s: float, burst_s: float, after_s: float
    ) -> float:
        """From the end of a burst until latencies are as before: half a second's p99 at most twice that of the time
        before, or _NORMAL_MS. On disk before it begins: what the load before left in the page cache."""
        os.sync()
        slices = round(after_s / _SLICE_S)
        phases = (
            Phase(round(low_per_s * after_s / 2), after_s / 2),
            Phase(round(high_per_s * burst_s), burst_s),
            *(Phase(round(low_per_s * _SLICE_S), _SLICE_S) for _ in range(slices)),
        )
        found = inject(self.order(Schedule(phases), by_topic=True))
        check(found)
        normal_ms = max(_NORMAL_MS, 2 * found.by_phase[0].quantile_ms(0.99))
        slow = [place for place, each in enumerate(found.by_phase[2:]) if each.quantile_ms(0.99) > normal_ms]
        return (max(slow) + 1) * _SLICE_S if slow else 0.0

    def silent_after_kill_s(self, rate_per_s: float, seconds: float) -> float:
        """Kill the unit half-way through a load. Returns the longest wait of an event, in seconds."""
        injection = Injection(
            self.order(Schedule.constant(rate_per_s, seconds), by_topic=True, grace_s=120.0)
        )
        try:
            start_ns = injection.start()
            time.sleep(max(0.0, (start_ns - time.monotonic_ns()) / 1e9 + seconds / 2))
            os.kill(self.service.unit_pid, signal.SIGKILL)
        except BaseException:
            injection.stop()
            raise
        found = injection.outcome()
        if found.bad:
            raise ChildFailedError(f"{found.bad} of {found.events} events were not answered")
        return found.latencies.greatest_ms / 1000


@contextmanager
def running_cluster(workload: Workload, environment: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """Yield a broker with an input topic, a front-end and a node on clean folders.

    environment: further settings of the front-end and the node.
    """
    topics = Topics(PREFIX)
    with (
        running_local_broker() as broker,
        tempfile.TemporaryDirectory(prefix="railgun-bench-e2e-") as folder,
    ):
        with KafkaTransport(KafkaSettings(broker.address)) as log:
            log.create_topic(topics.input(_STREAM), 1)
            # The topics are made before there is a front-end, so that readers find them.
            log.create_topic(topics.output(_STREAM), 1)
        with Service(
            Path(folder), workload.definitions, "os", broker.address, environment=environment
        ) as service:
            service.start()
            stem = topics.input(_STREAM).removesuffix(".in")
            yield Cluster(service, broker.address, stem, workload.payments, broker_pid=broker.pid)
            service.stop()
