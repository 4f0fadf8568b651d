"""Topics that were deleted and made anew while their tasks run: their ids are asked for beside the loop, together."""

from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from railgun.host.task_host import TaskHost
from railgun.messaging.errors import TransportRefusedError, TransportUnavailableError
from railgun.messaging.transport import TopicPartition, Transport
from railgun.unit.clock import Clock
from railgun.unit.replaced_logs import LOOK_S, ReplacedLogs
from tests.unit.kept_lane import KeptLane

STEP_S = 0.5


class Logs:
    """Copies of tasks of two topics. ids: of the topics now; None if no broker answers.  asked: for what."""

    def __init__(self) -> None:
        self.ids: dict[str, str] | None = {"card": "first", "shop": "second"}
        self.asked: list[Collection[str]] = []
        self.refusal: Exception | None = None
        self.now_s, self.lane = 0.0, KeptLane()
        self.hosts = [self._host(topic, number) for topic in ("card", "shop") for number in range(100)]
        self._logs = ReplacedLogs(
            cast(Transport, self), self.lane, Clock(lambda: self.now_s, lambda seconds: None)
        )

    def _host(self, topic: str, number: int) -> Any:
        assert self.ids is not None
        return SimpleNamespace(
            place=SimpleNamespace(where=TopicPartition(topic, number), identity=f"s/{topic}/{number}"),
            task=SimpleNamespace(topic_id=self.ids[topic]),
            position=5,
            is_running=True,
        )

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        self.asked.append(topics)
        if self.refusal is not None:
            raise self.refusal
        if self.ids is None:
            raise TransportUnavailableError("the broker", "it did not answer", "Try again")
        return {topic: self.ids[topic] for topic in topics if topic in self.ids}

    def find(self) -> list[str]:
        return [str(host.place.identity) for host, _ in self._logs.find(cast(list[TaskHost], self.hosts))]

    def pass_s(self, seconds: float, *, runs: bool = True) -> list[str]:
        """Let rounds of a unit pass. runs: whether what was submitted is done meanwhile."""
        found = []
        for _ in range(round(seconds / STEP_S)):
            self.now_s += STEP_S
            found += self.find()
            if runs:
                self.lane.run()
        return found


@pytest.fixture
def logs() -> Logs:
    return Logs()


def test_all_are_asked_for_together_every_few_seconds(logs: Logs) -> None:
    assert not logs.pass_s(3 * (LOOK_S + STEP_S))
    assert logs.asked == [["card", "shop"]] * 3
    logs.hosts.clear()
    assert not logs.pass_s(3 * LOOK_S)
    assert len(logs.asked) == 3


def test_copies_of_a_replaced_log_are_found(logs: Logs) -> None:
    assert logs.ids is not None
    logs.ids["shop"] = "third"
    found = logs.pass_s(LOOK_S + STEP_S)
    assert found == [f"s/shop/{number}" for number in range(100)]


def test_they_are_asked_for_beside_the_loop(logs: Logs) -> None:
    assert not logs.pass_s(10 * LOOK_S, runs=False)
    assert not logs.asked
    assert len(logs.lane.waiting) == 1


def test_a_broker_that_is_away_says_nothing(logs: Logs) -> None:
    logs.ids = None
    assert not logs.pass_s(3 * LOOK_S)
    logs.ids = {"card": "first", "shop": "third"}
    assert logs.pass_s(2 * LOOK_S)


def test_a_broker_that_refuses_to_say_is_said_once(logs: Logs, caplog: pytest.LogCaptureFixture) -> None:
    logs.refusal = TransportRefusedError("railgun.s.by.card", "Describe is not allowed", "Allow it")
    assert not logs.pass_s(4 * LOOK_S)
    assert caplog.text.count("Describe is not allowed") == 1
    logs.refusal, logs.ids = None, {"card": "first", "shop": "third"}
    assert logs.pass_s(2 * LOOK_S)


def test_a_topic_that_is_gone_is_for_reading_to_find(logs: Logs) -> None:
    assert logs.ids is not None
    del logs.ids["shop"]
    assert not logs.pass_s(3 * LOOK_S)


def test_what_has_changed_since_the_request_is_left_alone(logs: Logs) -> None:
    """The answer may be older than a host that has begun anew, or that came since."""
    assert logs.ids is not None
    logs.pass_s(LOOK_S, runs=False)
    logs.ids["card"] = "older"
    logs.lane.run()
    logs.hosts[0].task.topic_id = "newest"
    logs.hosts[1].is_running = False
    logs.hosts[2].position = 0
    logs.hosts.append(logs._host("card", 100))
    assert logs.find() == [f"s/card/{number}" for number in range(3, 100)]
