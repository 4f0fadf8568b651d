"""A stream whose events come by its input topic, as the oracle's steps see it; changes go over HTTP."""

from collections.abc import Mapping, Sequence
from typing import Any

from railgun.config.settings import InputSettings
from tests.frontend.kafka.cluster import LocalCluster
from tests.frontend.kafka.cluster_http_player import ClusterHttpPlayer
from tests.frontend.topics.input_topic import InputTopic
from tests.oracle.steps import Reply


class InputPlayer(ClusterHttpPlayer):
    """One partition of input, so that events are taken in the order in which they were written."""

    def __init__(self, cluster: LocalCluster, stream: str, intake: InputSettings | None = None) -> None:
        super().__init__(cluster, stream, intake)
        self._topic = InputTopic(cluster.broker, cluster.prefix, stream)
        self._answered = 0

    def score(self, event: Mapping[str, Any]) -> Reply:
        return self._through([event])[0]

    def score_array(self, events: Sequence[Mapping[str, Any]]) -> list[Reply]:
        return self._through(events)

    def score_lines(self, events: Sequence[Mapping[str, Any]]) -> list[Reply]:
        return self._through(events)

    def _through(self, events: Sequence[Mapping[str, Any]]) -> list[Reply]:
        # Every front-end knows what was changed before, whichever has the partition.
        _ = self.client
        self._topic.send([self.written(event) for event in events])
        self._answered += len(events)
        return self._topic.await_replies(self._answered)[-len(events) :]

    def written(self, event: Mapping[str, Any]) -> Mapping[str, Any] | bytes:
        """What is sent of an event; as it is, it becomes JSON."""
        return event

    def close(self) -> None:
        self._topic.close()
        super().close()
