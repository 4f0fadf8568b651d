"""How fast a backlog of twelve partitions is answered by two front-ends, and whether every answer is right.

Part of the end-to-end bench: `python -m bench.e2e --only backlog`. docs/measuring.md says what the figures are.
"""

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from numpy.typing import NDArray

from bench.children import ChildFailedError
from bench.e2e_run import running_cluster
from bench.http import Scaled
from bench.kafka import running_broker
from bench.load.lines import payment_lines
from bench.payments import BLOCK_EVENTS, Payments, blocks
from bench.report import Report
from bench.service import Service
from bench.unit_cases import THROUGHPUT, Workload
from railgun.catalog.definitions import parse_definitions
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.registry.evolution import missing
from railgun.registry.kafka_registry import KafkaRegistry
from railgun.registry.topics import PREFIX, Topics

_EVENTS, _PARTITIONS = 10_000_000, 12
_TOPIC = "prod.payments.v2"
_NARROW = THROUGHPUT["payments_1x3"]
# Ten million events in order are 1,000 s of event time, and the window holds 60 of them.
_WORKLOAD = replace(_NARROW, lateness="5s", payments=replace(_NARROW.payments, rate_per_s=10_000.0))
_INPUT = f'[streams.payments.input]\ntopics = ["{_TOPIC}"]\nstart = "earliest"\n'
_WARM_EVENTS = 1_000_000
# Brute force over the cards of few events: one card in 500, from the 250th most used on.
_CHECKED_EACH, _CHECKED_FIRST = 500, 250
_READ_RECORDS, _SILENT_S = 5_000, 60.0
_PARTITION_MASK = (1 << 14) - 1
_EVENT_RECORD, _POSITION_PLACE = b"\x01", 6


def backlog(report: Report) -> None:
    """Measure a backlog beside the bulk of one partition that a front-end reads as it is written, in one run."""
    scaled = Scaled(report.scale)
    events = scaled.events(_EVENTS)
    rates, bulks = [], []
    for _ in range(report.runs):
        bulks.append(_bulk_per_s(scaled.events(_WARM_EVENTS)))
        rates.append(_backlog_per_s(_WORKLOAD, events))
    report.note("backlog_bulk", bulks)
    report.note("backlog", rates, 0, f"   {events:,} events, none late, equal to brute force")
    report.note("backlog_ratio", [rate / bulk for rate, bulk in zip(rates, bulks, strict=True)], 3)


def _bulk_per_s(events: int) -> float:
    with running_cluster(_WORKLOAD) as cluster:
        cluster.bulk(events)
        return cluster.bulk(events)


def _backlog_per_s(workload: Workload, events: int) -> float:
    """Return the events/s from the first reply to the last. Raises ChildFailedError if one is late or wrong."""
    topics = Topics(PREFIX)
    with running_broker() as broker, tempfile.TemporaryDirectory(prefix="railgun-bench-backlog-") as folder:
        settings = KafkaSettings(broker)
        with KafkaTransport(settings) as log:
            log.create_topic(_TOPIC, _PARTITIONS)
            log.create_topic(topics.output("payments"), 1)
        _fill(broker, workload.payments, events)
        first, second = Path(folder, "first"), Path(folder, "second")
        first.mkdir()
        second.mkdir()
        with (
            Service(first, "", "os", broker) as serving,
            Service(second, "", "os", broker, role="frontend") as beside,
        ):
            serving.start()
            beside.start()
            replies = _Replies(broker, topics.output("payments"), workload.payments, events)
            # Both front-ends see the stream within the same second, and begin together.
            with KafkaRegistry(settings, PREFIX) as registry:
                definitions = parse_definitions(workload.definitions + _INPUT)
                registry.change(lambda catalog: missing(catalog, definitions))
            rate_per_s = replies.read()
            beside.stop()
            serving.stop()
        replies.check(_order(settings, topics.tasks("payments", "card"), events), workload)
        return rate_per_s


def _fill(broker: str, payments: Payments, events: int) -> None:
    """Write event i to partition i % 12, so that each partition is in order."""
    producer = Producer(
        {
            "bootstrap.servers": broker,
            "acks": "all",
            "linger.ms": 50,
            "batch.size": 1 << 20,
            "queue.buffering.max.messages": 2 * BLOCK_EVENTS,
        }
    )
    for begin in range(0, events, BLOCK_EVENTS):
        lines = payment_lines(payments, begin, min(BLOCK_EVENTS, events - begin))
        values = lines.buffer.split(b"\n")[: len(lines)]
        for partition in range(_PARTITIONS):
            own = values[(partition - begin) % _PARTITIONS :: _PARTITIONS]
            producer.produce_batch(_TOPIC, [{"value": value} for value in own], partition=partition)
        producer.flush(60.0)
    producer.close()


class _Replies:
    """Reads the output topic. Keeps the replies to the events of some cards, by the events' numbers."""

    def __init__(self, broker: str, topic: str, payments: Payments, events: int) -> None:
        self._events = events
        self._kept: dict[int, bytes] = {}
        self._cards, self._times_ms, self._amounts = _columns(replace(payments, events=events))
        self._is_checked = self._cards % _CHECKED_EACH == _CHECKED_FIRST
        self._seen = np.zeros(events, np.bool_)
        self._consumer = Consumer(
            {
                "bootstrap.servers": broker,
                "group.id": "bench",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def read(self) -> float:
        """Read until every event has its reply. Returns events/s."""
        begun, heard, first_count, total = 0.0, time.monotonic(), 0, 0
        while total < self._events:
            messages = self._consumer.consume(_READ_RECORDS, 1.0)
            now = time.monotonic()
            if messages:
                self._take(messages)
                heard, total = now, total + len(messages)
                if not begun:
                    begun, first_count = now, total
            elif now - heard > _SILENT_S:
                raise ChildFailedError(
                    f"{total:,} of {self._events:,} events were answered, and no more come"
                )
        self._consumer.close()
        if not self._seen.all():
            raise ChildFailedError(f"{int((~self._seen).sum()):,} events have no reply, others have two")
        return (total - first_count) / (heard - begun)

    def check(self, order: NDArray[np.int64], workload: Workload) -> None:
        """Compare what was kept with brute force over the events in the order of the task's log."""
        cards, times_ms, amounts = self._cards, self._times_ms, self._amounts
        # A window ends with the clock of its task, which is the greatest time so far.
        clocks_ms = np.maximum.accumulate(times_ms[order])
        kept = self._is_checked[order]
        checked, begins_ms = order[kept], clocks_ms[kept] - workload.window_ms
        for card in np.unique(cards[checked]):
            of_card = cards[checked] == card
            own = checked[of_card]
            for place, (number, begin_ms) in enumerate(
                zip(own.tolist(), begins_ms[of_card].tolist(), strict=True)
            ):
                metrics = msgspec.json.decode(self._kept[number])["metrics"]
                before = own[: place + 1]
                inside = before[times_ms[before] > begin_ms]
                wanted = len(inside), round(float(amounts[inside].sum()), 6)
                found = metrics["c0"], round(metrics["s0"], 6)
                if wanted != found:
                    raise ChildFailedError(f"event {number}: {found} instead of {wanted}")

    def _take(self, messages: list[Message]) -> None:
        for message in messages:
            value, key = message.value(), message.key()
            assert value is not None
            assert key is not None
            number = int(key[1:])
            if b'"late"' in value or b'"duplicate"' in value:
                raise ChildFailedError(f"event {number}: {value.decode()}")
            self._seen[number] = True
            if self._is_checked[number]:
                self._kept[number] = value


def _columns(payments: Payments) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the numbers of the cards, the times and the amounts of all events."""
    cards, times_ms, amounts = [], [], []
    for block in blocks(payments):
        texts = block.column("card").to_numpy(zero_copy_only=False)
        cards.append(np.array([int(text[1:]) for text in texts], np.int64))
        times_ms.append(block.column("ts").cast("int64").to_numpy())
        amounts.append(block.column("amount").to_numpy())
    return np.concatenate(cards), np.concatenate(times_ms), np.concatenate(amounts)


def _order(settings: KafkaSettings, topic: str, events: int) -> NDArray[np.int64]:
    """Return the events' numbers in the order of the log of their task."""
    found = np.fromiter(_logged(settings, topic), np.int64)
    if len(found) != events:
        raise ChildFailedError(f"{topic} holds {len(found):,} events, and not {events:,}")
    return found


def _logged(settings: KafkaSettings, topic: str) -> Iterator[int]:
    offset = 0
    with KafkaTransport(settings) as log:
        end = log.end_offset(topic, 0)
        while offset < end:
            fetched = log.read(topic, 0, offset, 50_000, 64 << 20)
            for record in fetched.values():
                if record[:1] == _EVENT_RECORD:
                    partition, at, _ = msgspec.msgpack.decode(record[1:])[_POSITION_PLACE]
                    yield at * _PARTITIONS + (partition & _PARTITION_MASK)
            offset = fetched.next_offset
