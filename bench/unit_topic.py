"""How fast one unit is: a process that reads a topic of a real broker and sends every reply.

    python -m bench.unit_topic [--runs N] [--scale F]

Prints the figure with the median and the spread over the runs, and at the end one line of JSON. docs/measuring.md
says what the figure is.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.command_line import measure
from bench.kafka import running_broker, write_blocks
from bench.payments import blocks
from bench.records import RecordMaker
from bench.report import Report
from bench.unit_cases import THROUGHPUT, Workload
from railgun.catalog.definitions import parse_definitions
from railgun.cluster.reports import decode_report
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import TopicPartition
from railgun.registry.evolution import missing
from railgun.registry.kafka_registry import KafkaRegistry
from railgun.registry.topics import Topics

_WORKLOAD = "payments_1x3"
_FRONT_END = 0
# These take longer than the time between two checkpoints.
_MEASURED_EVENTS = 6_000_000
_READY_S = 600.0


def unit_per_s(address: str, prefix: str, folder: Path, workload: Workload) -> float:
    """Events per second in the steady state, as many leaving the windows as arrive: read, processed, answered, the
    answers acknowledged."""
    definitions = parse_definitions(workload.definitions)
    (stream,) = definitions.streams.values()
    topics = Topics(prefix)
    where = TopicPartition(topics.tasks(stream.name, "card"), 0)
    settings = KafkaSettings(address)
    with KafkaTransport(settings) as log, KafkaRegistry(settings, prefix) as registry:
        registry.change(lambda catalog: missing(catalog, definitions))
        log.create_topic(topics.replies(_FRONT_END), 1)
        made = RecordMaker(blocks(workload.payments), stream)
        write_blocks(log, where, made.take(workload.warm_up + workload.measured))
        with _unit(address, prefix, folder):
            return _rate(log, TopicPartition(topics.positions, 0), workload.warm_up, log.end_offset(*where))


def _rate(log: KafkaTransport, positions: TopicPartition, first: int, end: int) -> float:
    """Replied records per second between two offsets, as the unit itself reports them, by the broker's clock."""
    deadline = time.monotonic() + _READY_S
    offset, begun, replied, now_ms = 0, (0, 0), 0, 0
    while replied < end:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the unit came to offset {replied} of {end}")
        if positions.topic not in log.topics():
            time.sleep(0.05)
            continue
        # One by one, since only the first of several fetched records has the time of its arrival.
        for fetched in log.fetch({positions: offset}, 1, 1 << 20, 1.0):
            report = decode_report(fetched.values()[0])
            assert report is not None
            copies = report.copies
            replied, now_ms = sum(copy.replied for copy in copies), fetched.appended_ms
            offset = fetched.next_offset
            # From the last report before `first` (or from the first of all): the next may be of the end already.
            if replied < first or not begun[0]:
                begun = now_ms, replied
    return (replied - begun[1]) / max(1, now_ms - begun[0]) * 1e3


@contextmanager
def _unit(address: str, prefix: str, folder: Path) -> Iterator[None]:
    config = folder / "railgun.toml"
    config.write_text(
        f'[cluster]\nbroker = "{address}"\ntopic_prefix = "{prefix}"\n[logging]\nlevel = "warning"\n',
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "railgun", "node", "--units", "1", "--data", str(folder / "data")]
    process = subprocess.Popen([*command, "--config", str(config)], stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def unit_topic(report: Report) -> None:
    """Measure a unit that reads the records that lie in its topic."""
    rates: list[float] = []
    with running_broker() as address:
        for run in range(report.runs):
            with tempfile.TemporaryDirectory(prefix="railgun-bench-unit-") as folder:
                events = max(int(_MEASURED_EVENTS * report.scale), 10_000)
                workload = replace(THROUGHPUT[_WORKLOAD], measured=events)
                rates.append(unit_per_s(address, f"bench{run}", Path(folder), workload))
    report.note("unit_topic", rates)


if __name__ == "__main__":
    sys.exit(measure("unit_topic", __doc__, {"unit_topic": unit_topic}))
