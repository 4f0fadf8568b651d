"""One task of a node, over an embedded log that stands for Kafka: opened on a folder, fed, its replies read."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from railgun.catalog.names import column_name
from railgun.catalog.task_key import TaskKey
from railgun.history.manifest import ready_folder
from railgun.host.lanes import HostLanes
from railgun.host.place import Place, task_folder
from railgun.messaging.embedded.log import Durability, EmbeddedLog
from railgun.messaging.transport import TopicPartition
from railgun.registry.topics import Topics
from railgun.task.environment import TaskEnvironment
from railgun.unit.hosting import Hosting
from railgun.unit.sending import Sending
from tests.host.deepening.deepened_host import SETTINGS
from tests.host.deepening.test_take_over import rows_of
from tests.task.small_log import IDENTITY
from tests.unit.local_units import awaited

FRONT_END = 7
TOPICS = Topics()
WHERE = TopicPartition(TOPICS.tasks("s", "k"), 0)


class OneTask:
    """data: the node's folder. records: what the log holds from the beginning."""

    def __init__(self, data: Path, log: EmbeddedLog, records: list[bytes]) -> None:
        self.data, self.log = data, log
        log.create_topic(WHERE.topic, 1)
        log.create_topic(TOPICS.replies(FRONT_END), 1)
        if records:
            log.append(*WHERE, records)
        place = Place(
            TaskKey("s", 1, "k", 0),
            IDENTITY,
            WHERE,
            task_folder(data, "s", 1, "k", 0),
            ready_folder(data, "s") / column_name("k") / "0",
        )
        environment = TaskEnvironment()
        self.lanes = HostLanes(environment.executor, 1)
        self.host = Hosting(log, Sending(log, TOPICS), environment, self.lanes).host(place, SETTINGS)
        self.host.open()
        self.take_all()

    def take_all(self) -> None:
        """Process what the log has."""
        end = self.log.end_offset(*WHERE)
        while self.host.position < end:
            assert self.host.failure is None
            self.host.take(self.log.read(*WHERE, self.host.position, 64, 1 << 20))

    def add(self, records: list[bytes]) -> None:
        """Write to the log, and process it."""
        self.log.append(*WHERE, records)
        self.take_all()

    def follow(self) -> None:
        """Work until what was built has followed the log to its end."""

        def has_followed() -> bool:
            self.host.work()
            self.host.take_over.step()
            following = self.host.following
            return following is not None and following.get("behind") == 0

        awaited(has_followed)

    def records(self) -> list[bytes]:
        """All of the log."""
        return self.log.read(*WHERE, 0, 1 << 16, 1 << 24).values()

    def replies(self) -> list[Any]:
        """What was answered to the front-end, in words."""
        self.host.replied()
        found = rows_of(self.log.read(TOPICS.replies(FRONT_END), 0, 0, 1 << 16, 1 << 24).values())
        rows: list[Any] = json.loads(json.dumps(found))
        return rows


@contextmanager
def one_task(data: Path, log_folder: Path, records: list[bytes]) -> Iterator[OneTask]:
    """The task, closed at the end of the block without a checkpoint."""
    with EmbeddedLog(log_folder, Durability.OS) as log:
        task = OneTask(data, log, records)
        try:
            yield task
        finally:
            task.host.close()
            task.lanes.close()
