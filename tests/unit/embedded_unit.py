"""The loop of a unit over an embedded log, with two tasks: what one of them waits for must not hold up the other."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import AddMetric, Change, PutStream, change_to_json
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.reports import decode_report
from railgun.host.data_folder import SNAPSHOTS
from railgun.host.lanes import HostLanes
from railgun.host.task_host import TaskHost
from railgun.messaging.embedded.log import Durability, EmbeddedLog
from railgun.messaging.transport import Fetched, TopicPartition
from railgun.registry.follower import Snapshot
from railgun.registry.topics import Topics
from railgun.task.environment import TaskEnvironment
from railgun.task.settings import TaskSettings
from railgun.unit.clock import IdleMeter
from railgun.unit.hosting import Hosting
from railgun.unit.hosts import UnitHosts
from railgun.unit.loop import UnitLoop
from railgun.unit.positions import Positions
from railgun.unit.query_server import QueryServer
from railgun.unit.sending import Sending
from railgun.unit.snapshots import UnitSnapshots
from railgun.wire.control_records import encode_control
from railgun.wire.encode import encode_event
from railgun.wire.reply import decode_reply
from tests.unit.fixed_plan import FixedSpread
from tests.unit.local_units import SMALL, awaited
from tests.unit.lone_copies import lone_copies

TOPICS = Topics()
KEYS = TaskKey("s", 1, "k", 0), TaskKey("s", 1, "k", 1)
FRONT_END = 5
DEFINITIONS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["k"]
partitions = 2
[streams.s.fields]
id = "string"
ts = "timestamp"
k = "string"
[[metrics]]
sql = "SELECT count(*) AS n FROM s GROUP BY k OVER SLIDING 1 HOUR"
"""
_NAME = CopyName("node-1", 0)


class UnitLog(EmbeddedLog):
    """A log in which nothing is read ahead."""

    def release(self, topic: str, partition: int) -> None:
        """Nothing is buffered."""


class EmbeddedUnit:
    """data: the node's folder. Rounds are the test's. Positions, events and reports are numbered by partition."""

    def __init__(self, folder: Path, settings: TaskSettings = SMALL) -> None:
        self.data, self.log = folder / "node", UnitLog(folder / "log", Durability.OS)
        definitions = parse_definitions(DEFINITIONS)
        changes: list[Change] = [PutStream(1, definitions.streams["s"], 1)]
        changes += [AddMetric(place, metric) for place, metric in enumerate(definitions.metrics, 2)]
        catalog = Catalog()
        for change in changes:
            catalog.apply(change)
        self.log.create_topic(TOPICS.tasks("s", "k"), 2)
        self.log.create_topic(TOPICS.positions, 1)
        self.log.create_topic(TOPICS.replies(FRONT_END), 1)
        for partition in range(2):
            self.append(partition, [encode_control(change_to_json(change)) for change in changes])
        self.lanes = HostLanes(TaskEnvironment().executor, 2)
        self.sending = Sending(self.log, TOPICS)
        hosting = Hosting(self.log, self.sending, TaskEnvironment(), self.lanes)
        copies = lone_copies()
        self.made: list[tuple[str, str]] = []
        self.snapshots = UnitSnapshots(self.data / SNAPSHOTS, lambda *made: self.made.append(made))
        self.loop = UnitLoop(
            self.log,
            TOPICS,
            FixedSpread(0, 1, _NAME),
            Positions(self.log, TOPICS, _NAME, copies, 0.0),
            self.sending,
            copies,
            UnitHosts(lambda places: [hosting.host(each, settings) for each in places], lambda host: None),
            self.data,
            QueryServer(self.log, TOPICS, self.sending.answer_query),
            self.snapshots,
            self.lanes.questions,
            removes=False,
            grace_s=0.0,
            waiting=IdleMeter(),
        )
        self.loop.follow(Snapshot(catalog, {"s": bytes(16)}, (), catalog))
        self._events = [0, 0]
        self.round_until(lambda: self.loop.is_ready)

    def host(self, partition: int) -> TaskHost:
        return self.loop.hosts[KEYS[partition]]

    def append(self, partition: int, records: Sequence[bytes]) -> None:
        self.log.append(TOPICS.tasks("s", "k"), partition, records)

    def change(self, partition: int, change: Change) -> None:
        """Write a control record to a task's log."""
        self.append(partition, [encode_control(change_to_json(change))])

    def event(self, partition: int) -> None:
        """Write the next event to a task's log."""
        number = self._events[partition]
        self._events[partition] += 1
        id_, time_ms = f"{partition}.{number}", 100_000_000 + 1_000 * number
        place = FRONT_END, 1, partition * 1_000_000 + number
        self.append(partition, [encode_event(1, id_, time_ms, [id_, time_ms, "a"], *place)])

    def round_until(self, condition: Callable[[], bool]) -> None:
        """Do rounds until something is so."""

        def is_so() -> bool:
            self.loop.round()
            return condition()

        awaited(is_so, 30.0)

    def has_answered(self, partition: int) -> bool:
        """Whether the newest event of a task is answered."""
        newest = partition * 1_000_000 + self._events[partition] - 1
        replies = self._all(TOPICS.replies(FRONT_END)).values()
        return any(newest in decode_reply(each).sequence.tolist() for each in replies)

    def answers_meanwhile(self, partition: int, times: int = 3) -> None:
        """Have a task answer some events, one after the other."""
        for _ in range(times):
            self.event(partition)
            self.round_until(lambda: self.has_answered(partition))

    def state(self, partition: int) -> CopyState:
        """What the newest report says of a task."""
        report = decode_report(self._all(TOPICS.positions).values()[-1])
        return next(each.state for each in report.copies if each.partition == partition)

    def _all(self, topic: str) -> Fetched:
        return self.log.read(topic, 0, self.log.start_offset(topic, 0), 1_000_000, 1 << 30)

    def where(self, partition: int) -> TopicPartition:
        return TopicPartition(TOPICS.tasks("s", "k"), partition)

    def close(self) -> None:
        self.loop.abandon()
        self.lanes.close()
        self.log.close()


@contextmanager
def embedded_unit(folder: Path, settings: TaskSettings = SMALL) -> Iterator[EmbeddedUnit]:
    """A unit that is closed with the block."""
    made = EmbeddedUnit(folder, settings)
    try:
        yield made
    finally:
        made.close()
