"""One task of a unit, over an embedded log, which is deepened: each step of it by itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from railgun.catalog.changes import BeginDeepening, Change, Deepen, change_to_json
from railgun.catalog.names import column_name
from railgun.catalog.task_key import TaskKey
from railgun.history.manifest import ready_folder
from railgun.history.plan_file import OWN, deepening_folder, read_own, write_plan
from railgun.history.request_files import OFFER, REQUEST, DeepeningRequest, write_request
from railgun.host.lanes import HostLanes
from railgun.host.place import Place
from railgun.messaging.transport import TopicPartition
from railgun.registry.topics import Topics
from railgun.task.environment import TaskEnvironment
from railgun.unit.hosting import Hosting
from railgun.unit.hosts import UnitHosts
from railgun.unit.sending import Sending
from railgun.wire.control_records import encode_control
from tests.engine.deepening.deepened import build_deepening
from tests.history.test_accepted_events import DEFINITIONS, NO_HISTORY, log_with_inputs, plan_of
from tests.host.test_task_host import HeldLog
from tests.task.small_log import IDENTITY
from tests.unit.local_units import SMALL, awaited

__all__ = ["DEFINITIONS", "DeepenedHost", "deepened_host"]

TOPICS = Topics()
WHERE = TopicPartition(TOPICS.tasks("s", "k"), 0)
SETTINGS = replace(SMALL, chunk_events=16, segment_bytes=1 << 11, checkpoint_interval_s=1e9, replay_s=1e9)
HISTORY = "h" * 32


class DeepenedHost:
    """data: the node's folder. host: what runs the task now; `open` makes it anew."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "node"
        self.small = log_with_inputs()
        self.log = HeldLog(folder / "log")
        self.log.create_topic(WHERE.topic, 1)
        self.log.append(*WHERE, self.small.records)
        self.place_of_change, self.offers, self.created = 10, 0, 1
        below = Path(column_name("k"), "0")
        self.own = deepening_folder(self.data, "s") / OWN / below
        self.place = Place(
            TaskKey("s", 1, "k", 0),
            IDENTITY,
            WHERE,
            self.data / "tasks" / "s.1" / below,
            ready_folder(self.data, "s") / below,
        )
        self.open()

    def open(self) -> None:
        environment = TaskEnvironment()
        self.lanes = HostLanes(environment.executor, 2)
        hosting = Hosting(self.log, Sending(self.log, TOPICS), environment, self.lanes)
        self.hosts = UnitHosts(
            lambda places: [hosting.host(each, SETTINGS) for each in places], lambda host: None
        )
        self.hosts.assign([self.place])
        self.hosts.wait()
        self.hosts.advance()
        self.host = self.hosts.by_key[self.place.key]

    def change(self, kind: type[BeginDeepening] | type[Deepen], history: str = HISTORY) -> None:
        """Write it to the log, and let the task come to it."""
        self.order(kind, history)
        self.take_all()

    def order(self, kind: type[BeginDeepening] | type[Deepen], history: str = HISTORY) -> None:
        """Write it to the log."""
        self.place_of_change += 1
        change: Change = (
            Deepen(self.place_of_change, "s", history, 0)
            if kind is Deepen
            else BeginDeepening(self.place_of_change, "s", history)
        )
        self.log.append(*WHERE, [encode_control(change_to_json(change))])

    def add(self, records: list[bytes]) -> None:
        """Write records to the log, and let the task process them."""
        self.log.append(*WHERE, records)
        self.take_all()

    def take_all(self) -> None:
        end = self.log.end_offset(*WHERE)
        while self.host.position < end and self.host.is_running:
            fetched = self.log.read(*WHERE, self.host.position, 64, 1 << 20)
            self.hosts.run_isolated(self.host, partial(self.host.take, fetched))
            # What the host does in its lane, the test waits for.
            self.hosts.wait()
            self.hosts.advance()

    def work(self) -> None:
        """What the task needs beside records, and a step of what follows it."""
        self.hosts.run_isolated(self.host, self.host.work)
        self.host.take_over.step()

    def close(self) -> None:
        """Let the task go as it is."""
        self.host.close()
        self.lanes.close()

    def request(self, history: str = HISTORY) -> None:
        """As the job does, before the record."""
        folder = deepening_folder(self.data, "s")
        folder.mkdir(parents=True, exist_ok=True)
        write_request(folder / REQUEST, DeepeningRequest(history, self.created))

    def begin(self, history: str = HISTORY) -> None:
        """Up to where the task is built; nobody is offered it yet."""
        self.take_all()
        self.request(history)
        self.change(BeginDeepening, history)
        awaited(lambda: read_own(self.own, history) is not None)
        own = read_own(self.own, history)
        assert own is not None
        folder = deepening_folder(self.data, "s")
        plan = replace(plan_of(self.small, folder / OWN, own, 0), history=history)
        write_plan(folder, plan)
        build_deepening(ready_folder(self.data, "s"), plan, NO_HISTORY, SETTINGS)

    def offer(self, history: str = HISTORY) -> None:
        self.offers += 1
        asked = DeepeningRequest(history, self.created, str(self.offers))
        write_request(deepening_folder(self.data, "s") / OFFER, asked)

    def work_until_following(self) -> None:
        self.work_until("behind", 0)

    def work_until(self, name: str, value: object) -> None:
        """Until the task says so of what follows it."""

        def said() -> bool:
            self.work()
            following = self.host.following
            return following is not None and following.get(name) == value

        awaited(said)


@contextmanager
def deepened_host(folder: Path) -> Iterator[DeepenedHost]:
    made = DeepenedHost(folder)
    try:
        yield made
    finally:
        made.close()
        made.log.close()
