"""Units in this process, each with clients of its own: quick to start, and their tasks can be looked at."""

import inspect
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from railgun.cluster.copies import CopyName
from railgun.host.data_folder import SNAPSHOTS
from railgun.host.lanes import HostLanes
from railgun.messaging.kafka.configured import for_tasks
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import TopicPartition, TopicSettings
from railgun.registry.kafka_registry import KafkaRegistry
from railgun.task.environment import TaskEnvironment
from railgun.task.settings import MIB, TaskSettings
from railgun.unit.assignments import Assignments
from railgun.unit.clock import IdleMeter
from railgun.unit.copies import UnitCopies
from railgun.unit.hosting import Hosting
from railgun.unit.hosts import UnitHosts
from railgun.unit.loop import UnitLoop
from railgun.unit.positions import Positions
from railgun.unit.query_server import QueryServer
from railgun.unit.report_reader import ReportReader
from railgun.unit.sending import Sending
from railgun.unit.snapshots import UnitSnapshots
from tests.unit.fixed_plan import FixedSpread

QUICK = {"fetch.wait.max.ms": 30}
# Of tasks of which many are open at a time, with checkpoints among the events of a short test.
SMALL = TaskSettings(
    row_cache_bytes=4 * MIB,
    page_cache_bytes=8 * MIB,
    chunk_cache_bytes=4 * MIB,
    block_cache_bytes=4 * MIB,
    write_buffer_bytes=4 * MIB,
    checkpoint_interval_s=0.2,
)


def quick_settings(broker: str) -> KafkaSettings:
    """Of a client in a test."""
    return KafkaSettings(broker, pass_through=QUICK)


class LocalUnit:
    """A unit that a thread runs. error: what ended it. is_run: False where the test does each round itself."""

    def __init__(
        self,
        broker: str,
        prefix: str,
        folder: Path,
        index: int,
        units: int,
        settings: TaskSettings,
        grace_s: float = 60.0,
        *,
        is_run: bool = True,
        node: str = "test",
        assignments: Assignments | None = None,
    ) -> None:
        self.error: Exception | None = None
        self._stopped = threading.Event()
        self.transport = KafkaTransport(for_tasks(quick_settings(broker)))
        self.registry = KafkaRegistry(quick_settings(broker), prefix)
        topics = self.registry.topics
        self._reports = KafkaTransport(quick_settings(broker))
        self._reports.create_topic(topics.positions, 1, TopicSettings(is_compacted=True))
        name, generation = CopyName(node, index), time.time_ns() // 1_000_000
        self._reader = ReportReader(self._reports, [TopicPartition(topics.positions, 0)])
        self.copies = UnitCopies(name, generation, self._reader.drain, topics.assignment)
        self.sending = Sending(self.transport, topics)
        waiting = IdleMeter()
        environment = TaskEnvironment(used_s=waiting.used_s)
        self._lanes = HostLanes(environment.executor, 2)
        hosting = Hosting(self.transport, self.sending, environment, self._lanes, f".{node}.{index}")
        self.loop = UnitLoop(
            self.transport,
            topics,
            assignments or FixedSpread(index, units, name),
            Positions(self._reports, topics, name, self.copies, 0.01),
            self.sending,
            self.copies,
            UnitHosts(lambda places: [hosting.host(each, settings) for each in places], lambda host: None),
            folder,
            QueryServer(self.transport, topics, self.sending.answer_query),
            UnitSnapshots(folder / SNAPSHOTS, lambda name, error: None),
            self._lanes.questions,
            removes=index == 0,
            grace_s=grace_s,
            waiting=waiting,
        )
        self.registry.follow(self.loop.follow)
        self._reader.__enter__()
        self._thread = threading.Thread(target=self._run, name=f"unit-{index}")
        if is_run:
            self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                self.loop.round()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error

    def halt(self) -> None:
        """Let nothing happen any more; then its tasks can be looked at."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def stop(self, *, checkpoint: bool = True) -> None:
        """End it; without a checkpoint the next one goes on from an earlier place."""
        self.halt()
        try:
            if checkpoint and self.error is None:
                self.loop.leave()
                self.loop.stop()
            else:
                self.loop.abandon()
        finally:
            self._lanes.close()
            self.registry.close()
            self._reader.__exit__()
            self._reports.close()
            self.transport.close()
        if self.error is not None:
            raise self.error


@contextmanager
def local_units(
    broker: str, prefix: str, folder: Path, units: int, settings: TaskSettings
) -> Iterator[list[LocalUnit]]:
    """All units of a node, stopped with the block."""
    running = [LocalUnit(broker, prefix, folder, index, units, settings) for index in range(units)]
    try:
        yield running
    finally:
        for unit in running:
            unit.stop()


def awaited(condition: Callable[[], bool], wait_s: float = 120.0) -> None:
    """Return when something has become so."""
    deadline = time.monotonic() + wait_s
    while not condition():
        assert time.monotonic() < deadline, (
            f"not so after {wait_s:g} s: {inspect.getsource(condition).strip()}"
        )
        time.sleep(0.01)
