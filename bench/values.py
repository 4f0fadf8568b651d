"""How fast values without an event are, beside events; and what events feel of it.

    python -m bench.values [--only NAME ...] [--runs N] [--scale F]

Prints a line per figure with the median and the spread over the runs, and at the end one line of JSON.
docs/measuring.md says what each figure is.
"""

import http.client
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from bench.children import ChildFailedError
from bench.command_line import Case, measure
from bench.http import Scaled
from bench.http_run import Target
from bench.kafka import running_broker
from bench.report import Report
from bench.service import Service
from bench.unit_cases import THROUGHPUT
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import TopicPartition

_WORKLOAD = THROUGHPUT["payments_1x3"]
_EVENTS_PER_S, _QUERIES_PER_S, _SECONDS, _SETTLED_S = 500, 100, 30.0, 15.0
# There are as many connections as threads, each with one query under way, so that a slow one delays no other.
_CONNECTIONS = 8
_WARM_EVENTS = 100_000
_HOP_BYTES = bytes(250)


def _at_rate(
    do: Callable[[int], None], rate_per_s: float, seconds: float, after_s: float = 0.0
) -> list[float]:
    """Call something at a rate from one thread. Returns how long each call took, in ms, from when it was due.

    after_s: when the first is due, from now.
    """
    begun_s, found = time.perf_counter() + after_s, []
    for number in range(round(rate_per_s * seconds)):
        due_s = begun_s + number / rate_per_s
        time.sleep(max(0.0, due_s - time.perf_counter()))
        do(number)
        found.append(1000 * (time.perf_counter() - due_s))
    return found


_STREAM = "/v1/streams/payments"


class _Queries:
    """Queries for random cards over connections that stay open. One thread uses it at a time."""

    def __init__(self, service: Service, cards: int, seed: int) -> None:
        self._connection = http.client.HTTPConnection(service.host, service.port, timeout=60)
        self._cards, self._chance = cards, random.Random(seed)

    def ask(self, number: int) -> None:
        """Query one card."""
        # One query in ten is for a card that has no events.
        card = self._chance.randrange(self._cards + self._cards // 10)
        self._get(f"{_STREAM}/values?card=c{card:09d}")

    def show(self, number: int) -> None:
        """Request the stream's definition, which the server has at hand: it shows the time of HTTP itself."""
        self._get(_STREAM)

    def _get(self, path: str) -> None:
        self._connection.request("GET", path)
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status != http.HTTPStatus.OK:
            raise ChildFailedError(f"{path}: {answer.status}: {said[:200].decode()}")


def _asked(
    service: Service, seconds: float, ask: Callable[[_Queries, int], None] = _Queries.ask
) -> list[float]:
    """Return how long requests took, in ms, at the bench's rate."""
    cards = _WORKLOAD.payments.cards
    queries = [_Queries(service, cards, seed) for seed in range(_CONNECTIONS)]
    rate_per_s = _QUERIES_PER_S / _CONNECTIONS
    # The threads begin one after another, or all their calls would be due at once.
    return _together(
        [
            partial(_at_rate, partial(ask, each), rate_per_s, seconds, place / _QUERIES_PER_S)
            for place, each in enumerate(queries)
        ]
    )


def _together(parts: list[Callable[[], list[float]]]) -> list[float]:
    found: list[list[float]] = []
    threads = [threading.Thread(target=_append, args=(part, found)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(found) < len(parts):
        raise ChildFailedError("a query failed")
    return [each for part in found for each in part]


def _append(part: Callable[[], list[float]], found: list[list[float]]) -> None:
    found.append(part())


class _Hops:
    """Sends a record to a topic and gets one back by another topic, the least that a query takes. A thread echoes."""

    def __init__(self, broker: str) -> None:
        self._here, self._there = KafkaTransport(KafkaSettings(broker)), KafkaTransport(KafkaSettings(broker))
        self._out, self._back = TopicPartition("bench.out", 0), TopicPartition("bench.back", 0)
        for where in (self._out, self._back):
            self._here.create_topic(where.topic, 1)
        self._stopped = threading.Event()
        self._position = 0
        self._thread = threading.Thread(target=self._echo, daemon=True)
        self._thread.start()

    def _echo(self) -> None:
        position = 0
        while not self._stopped.is_set():
            for fetched in self._there.fetch({self._out: position}, 100, 1 << 20, 0.05):
                position = fetched.next_offset
                self._there.append(*self._back, fetched.values())

    def once(self, number: int) -> None:
        """Send one record, and wait for the echo."""
        self._here.append(*self._out, [_HOP_BYTES])
        until = self._position + 1
        while self._position < until:
            for fetched in self._here.fetch({self._back: self._position}, 100, 1 << 20, 0.5):
                self._position = fetched.next_offset

    def close(self) -> None:
        """Stop the thread that echoes."""
        self._stopped.set()
        self._thread.join()
        self._here.close()
        self._there.close()


@contextmanager
def _embedded() -> Iterator[tuple[Target, str | None]]:
    with (
        tempfile.TemporaryDirectory(prefix="railgun-bench-values-") as folder,
        Service(Path(folder), _WORKLOAD.definitions, "os") as service,
    ):
        service.start()
        yield Target(service, _WORKLOAD.payments), None
        service.stop()


@contextmanager
def _on_kafka() -> Iterator[tuple[Target, str | None]]:
    with (
        running_broker() as broker,
        tempfile.TemporaryDirectory(prefix="railgun-bench-values-") as folder,
        Service(Path(folder), _WORKLOAD.definitions, "os", broker) as service,
    ):
        service.start()
        yield Target(service, _WORKLOAD.payments), broker
        service.stop()


def _extend(into: list[float], measure_all: Callable[[], list[float]]) -> None:
    into += measure_all()


def _case(prefix: str, served: Callable[[], AbstractContextManager[tuple[Target, str | None]]]) -> Case:
    def case(report: Report) -> None:
        scaled = Scaled(report.scale)
        seconds = scaled.seconds(_SECONDS, 5.0)
        found: dict[str, list[float]] = {}

        def note(key: str, values: list[float], quantile: float) -> float:
            value = float(np.quantile(values, quantile))
            found.setdefault(key, []).append(value)
            return value

        with served() as (target, broker):
            target.bulk(scaled.events(_WARM_EVENTS))
            # A broker that has just started spends a core on compiling what single events need.
            settled_s = scaled.seconds(_SETTLED_S, 2.0)
            asked = partial(_asked, target.service, settled_s)
            target.while_doing(partial(_extend, [], asked), _EVENTS_PER_S, 1.0, settled_s)
            hops = None if broker is None else _Hops(broker)
            for _ in range(report.runs):
                took: list[float] = []
                beside = target.while_doing(
                    partial(_extend, took, partial(_asked, target.service, seconds)),
                    _EVENTS_PER_S,
                    seconds,
                    2 * seconds,
                )
                found.setdefault("events_p999_before_ms", []).append(beside.before_ms)
                found.setdefault("events_p999_ms", []).append(beside.during_ms)
                found.setdefault("events_p999_after_ms", []).append(beside.after_ms)
                median = note("p50_ms", took, 0.5)
                note("p99_ms", took, 0.99)
                pages: list[float] = []
                target.while_doing(
                    partial(_extend, pages, partial(_asked, target.service, seconds, _Queries.show)),
                    _EVENTS_PER_S,
                    1.0,
                    seconds,
                )
                page = note("http_p50_ms", pages, 0.5)
                if hops is not None:
                    bare: list[float] = []
                    target.while_doing(
                        partial(_extend, bare, partial(_at_rate, hops.once, _QUERIES_PER_S, seconds)),
                        _EVENTS_PER_S,
                        1.0,
                        seconds,
                    )
                    hop = note("hops_p50_ms", bare, 0.5)
                    note("hops_p99_ms", bare, 0.99)
                    found.setdefault("ratio_to_hops", []).append(median / hop)
                    found.setdefault("ratio_to_hops_and_http", []).append(median / (hop + page))
            if hops is not None:
                hops.close()
        for key, values in found.items():
            report.note(f"{prefix}values_{key}", values, 3)

    return case


CASES: dict[str, Case] = {"embedded": _case("", _embedded), "kafka": _case("kafka_", _on_kafka)}


if __name__ == "__main__":
    sys.exit(measure("values", __doc__, CASES))
