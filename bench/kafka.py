"""How fast Kafka is as the log: a real local broker, one writer, one reader, one task that reads its topic.

    python -m bench.kafka [--runs N] [--scale F]

Prints a line per figure with the median and the spread over the runs, and at the end one line of JSON.
docs/measuring.md says what each figure is.
"""

import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bench.command_line import measure
from bench.report import Report
from bench.unit_cases import THROUGHPUT
from bench.unit_task import WarmTask
from railgun.broker.local import LocalBroker, Status
from railgun.messaging.errors import TransportFullError
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Entry, TopicPartition, Transport
from railgun.wire.records import Records

_RECORD_BYTES = 250
_BLOCK_RECORDS = 2_000
_FETCH_RECORDS, _FETCH_BYTES = 4_096, 4 << 20
_RATE_PER_S = 500
_WARM_UP_S = 1.0
_RATES = ("write_250", "read_250", "task_topic", "task_topic_per_cpu")


@contextmanager
def running_local_broker() -> Iterator[Status]:
    """Yield the address and process id of an empty broker, which ends with the block."""
    with tempfile.TemporaryDirectory(prefix="railgun-bench-kafka-") as folder:
        broker = LocalBroker(Path(folder))
        try:
            yield broker.start(0, lambda line: print(line, file=sys.stderr))
        finally:
            broker.stop()


@contextmanager
def running_broker() -> Iterator[str]:
    """Yield the address of an empty broker, which ends with the block."""
    with running_local_broker() as status:
        yield status.address


def write_blocks(log: Transport, where: TopicPartition, blocks: Iterator[Records]) -> None:
    """Append blocks as fast as they are taken. Returns when all are acknowledged."""
    waiting: deque[Future[list[int]]] = deque()
    for block in blocks:
        while True:
            try:
                waiting.append(log.submit([Entry(where, block)]))
                break
            except TransportFullError:
                waiting.popleft().result()
    for future in waiting:
        future.result()


def _fetched(log: Transport, where: TopicPartition, first: int, after: int) -> Iterator[tuple[int, Records]]:
    while first < after:
        for each in log.fetch({where: first}, _FETCH_RECORDS, _FETCH_BYTES, 1.0):
            yield first, each.records
            first = each.next_offset


def one_way_ms(log: Transport, where: TopicPartition, records: int) -> list[float]:
    """From the call that submits a record until another thread has it, at a steady rate; the first second is left
    out."""
    skipped = int(_WARM_UP_S * _RATE_PER_S)
    total = skipped + records
    begun = time.perf_counter() + 0.1

    def send() -> None:
        for number in range(total):
            due_s = begun + number / _RATE_PER_S
            time.sleep(max(due_s - time.perf_counter(), 0))
            stamp = time.perf_counter_ns().to_bytes(8, "little")
            log.submit([Entry(where, Records.of([stamp + bytes(_RECORD_BYTES - 8)]))])

    sender = threading.Thread(target=send)
    sender.start()
    taken: list[float] = []
    for _, part in _fetched(log, where, 0, total):
        now_ns = time.perf_counter_ns()
        taken += [(now_ns - int.from_bytes(each[:8], "little")) / 1e6 for each in part.to_list()]
    sender.join()
    return taken[skipped:]


def write_per_s(log: Transport, where: TopicPartition, records: int) -> float:
    """Return how many records are acknowledged per second."""
    bounds = np.arange(_BLOCK_RECORDS + 1, dtype=np.int64) * _RECORD_BYTES
    block = Records(np.zeros(bounds[-1], np.uint8), bounds)
    begun = time.perf_counter()
    write_blocks(log, where, iter([block] * (records // _BLOCK_RECORDS)))
    return records / (time.perf_counter() - begun)


def read_per_s(address: str, where: TopicPartition, records: int) -> float:
    """Return how many records per second are read from a topic that holds them all, without the time to connect."""
    with KafkaTransport(KafkaSettings(address)) as log:
        first = len(log.read(*where, 0, 1, 1))
        begun = time.perf_counter()
        for _ in _fetched(log, where, first, records):
            pass
        return records / (time.perf_counter() - begun)


def task_per_s(log: Transport, where: TopicPartition, events: int) -> tuple[float, float]:
    """Events per second, and per CPU second of its thread, of one task that reads its partition: fetched, processed,
    replies encoded."""
    warm = WarmTask(THROUGHPUT["payments_1x3"])
    try:
        # The task's own control records were not read from this log. Other records have their offsets there.
        first = warm.task.position
        log.append(*where, [b"-"] * first)
        measured_from = first + warm.workload.warm_up
        after = measured_from + events
        write_blocks(log, where, warm.records.take(after - first))
        begun = begun_cpu = 0.0
        for offset, records in _fetched(log, where, first, after):
            if not begun and offset >= measured_from:
                begun, begun_cpu, begun_at = time.perf_counter(), time.thread_time(), offset
            warm.task.process(records, offset, warm.answer)
            warm.task.work()
        events = after - begun_at
        return events / (time.perf_counter() - begun), events / (time.thread_time() - begun_cpu)
    finally:
        warm.close()


def _log(report: Report) -> None:
    """Measure the broker, and one task that reads from it."""
    records = max(int(1_000_000 * report.scale) // _BLOCK_RECORDS, 1) * _BLOCK_RECORDS
    found: dict[str, list[float]] = {key: [] for key in _RATES}
    times: list[list[float]] = []
    with running_broker() as address, KafkaTransport(KafkaSettings(address)) as log:
        for run in range(report.runs):
            log.create_topic(f"run-{run}", 3)
            near, bulk, unit = (TopicPartition(f"run-{run}", partition) for partition in range(3))
            times.append(one_way_ms(log, near, max(int(10_000 * report.scale), 100)))
            found["write_250"].append(write_per_s(log, bulk, records))
            found["read_250"].append(read_per_s(address, bulk, records))
            for key, value in zip(_RATES[2:], task_per_s(log, unit, records), strict=True):
                found[key].append(value)
            log.delete_topic(f"run-{run}")
    for name, share in (("p50", 50), ("p99", 99), ("p999", 99.9)):
        report.note(f"one_way_{name}_ms", [float(np.percentile(each, share)) for each in times], 3)
    for key, values in found.items():
        report.note(key, values)


if __name__ == "__main__":
    sys.exit(measure("kafka", __doc__, {"log": _log}))
