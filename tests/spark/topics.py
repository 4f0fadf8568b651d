"""The logs of a data folder, record for record in topics of a broker."""

from pathlib import Path

from railgun.messaging.embedded.read_only import ReadOnlyLog
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.registry.topics import PREFIX
from tests.broker.own_topics import own_prefix


class CopiedTopics:
    """Those of a data folder as it is, under a prefix of their own; `copy` brings what has come since."""

    def __init__(self, broker: str, data: Path) -> None:
        self.prefix = own_prefix("s")
        self.transport = KafkaTransport(KafkaSettings(broker, pass_through={"fetch.wait.max.ms": 10}))
        self._data = data
        self._copied: dict[tuple[str, int], int] = {}
        self.copy()

    def __enter__(self) -> "CopiedTopics":
        return self

    def __exit__(self, *raised: object) -> None:
        self.transport.close()

    def topic(self, topic: str) -> str:
        """What an embedded topic is called here."""
        return self.prefix + topic.removeprefix(PREFIX)

    def copy(self) -> None:
        """What the folder's logs have and the topics do not."""
        with ReadOnlyLog(self._data / "log") as log:
            for topic, partitions in log.topics().items():
                self.transport.create_topic(self.topic(topic), partitions)
                for partition in range(partitions):
                    self._copy(log, topic, partition)

    def _copy(self, log: ReadOnlyLog, topic: str, partition: int) -> None:
        at, end = self._copied.get((topic, partition), 0), log.end_offset(topic, partition)
        while at < end:
            fetched = log.read(topic, partition, at, 1_000, 1 << 20)
            self.transport.append(self.topic(topic), partition, fetched.values())
            at = fetched.next_offset
        self._copied[topic, partition] = at
