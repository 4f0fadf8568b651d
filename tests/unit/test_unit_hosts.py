"""Copies that cannot be opened while the broker is away are opened once it is back."""

from pathlib import Path

import pytest

from railgun.catalog.task_key import TaskKey
from railgun.host.lanes import HostLanes
from railgun.host.place import Place
from railgun.messaging.embedded.log import Durability, EmbeddedLog
from railgun.messaging.errors import TransportUnavailableError
from railgun.messaging.transport import TopicPartition
from railgun.registry.topics import Topics
from railgun.task.environment import TaskEnvironment
from railgun.task.settings import TaskIdentity
from railgun.unit import hosts as unit_hosts
from railgun.unit.hosting import Hosting
from railgun.unit.hosts import UnitHosts
from railgun.unit.sending import Sending
from tests.unit.local_units import SMALL, awaited

_TOPICS = Topics()
_KEY = TaskKey("s", 1, "card", 0)
_WHERE = TopicPartition(_TOPICS.tasks("s", "card"), 0)


class _AwayLog(EmbeddedLog):
    """asked: how often it was asked for its bounds while it is away."""

    is_away, asked = True, 0

    def _answer(self) -> None:
        if self.is_away:
            self.asked += 1
            raise TransportUnavailableError(str(_WHERE), "it does not answer", "Check the broker")

    def start_offset(self, topic: str, partition: int) -> int:
        self._answer()
        return super().start_offset(topic, partition)

    def end_offset(self, topic: str, partition: int) -> int:
        self._answer()
        return super().end_offset(topic, partition)

    def release(self, topic: str, partition: int) -> None:
        """Nothing is read ahead here."""


def test_a_copy_whose_opening_meets_no_broker_is_opened_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_hosts, "_AWAY_S", 0.01)
    log, environment = _AwayLog(tmp_path / "log", Durability.OS), TaskEnvironment()
    lanes = HostLanes(environment.executor, 1)
    hosting = Hosting(log, Sending(log, _TOPICS), environment, lanes)
    hosts = UnitHosts(lambda places: [hosting.host(each, SMALL) for each in places], lambda host: None)
    identity = TaskIdentity("s", "card", 0, bytes(16))
    try:
        log.create_topic(_WHERE.topic, 1)
        hosts.assign([Place(_KEY, identity, _WHERE, tmp_path / "task", tmp_path / "ready")])

        def is_open() -> bool:
            hosts.advance()
            return hosts.by_key[_KEY].is_running

        awaited(lambda: not is_open() and log.asked > 2)
        assert not hosts.are_open
        log.is_away = False
        awaited(is_open)
        assert hosts.are_open
    finally:
        hosts.wait()
        hosts.by_key[_KEY].close()
        lanes.close()
        log.close()
