"""What is wrong with a log that could not be read is asked beside the loop, of those that the error may be about."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from railgun.host.task_host import TaskHost
from railgun.messaging.errors import (
    OffsetOutOfRangeError,
    TopicMissingError,
    TransportError,
    TransportUnavailableError,
)
from railgun.messaging.transport import TopicPartition, Transport
from railgun.task.errors import LogCutError, LogReplacedError, StateLeftBehindError
from railgun.unit.clock import Clock
from railgun.unit.log_faults import GONE_S, LogFaults
from tests.unit.kept_lane import KeptLane

TOPIC = "railgun.s.by.card"


class Logs:
    """Two tasks at offset 5, and their logs. wrong: what asking for a log raises.  starts: where logs begin."""

    def __init__(self) -> None:
        self.wrong: dict[int, Exception] = {}
        self.cut: Exception | None = None
        self.starts = {0: 0, 1: 0}
        self.asked, self.limits = list[int](), list[float | None]()
        self.now_s, self.lane = 0.0, KeptLane()
        self.faults = LogFaults(
            cast(Transport, self),
            self.lane,
            Clock(lambda: self.now_s, lambda seconds: pytest.fail("it waits")),
        )
        self.running = {TopicPartition(TOPIC, number): self._host(number) for number in (0, 1)}

    def _host(self, number: int) -> TaskHost:
        host = SimpleNamespace(
            place=SimpleNamespace(where=TopicPartition(TOPIC, number), identity=f"s/card/{number}"),
            position=5,
            is_running=True,
            epoch_before=lambda offset: 3,
            log=SimpleNamespace(check_continues=self._check),
            task=SimpleNamespace(
                topic_id="first",
                checkpoints=SimpleNamespace(durable_position=0, durable_epoch=-1),
                admission=SimpleNamespace(clock_ms=0),
            ),
        )
        # Of these each is another one, though it says the same.
        return cast(TaskHost, _Identified(host))

    def _check(self, place: str, position: int, epoch: int, topic_id: str) -> None:
        assert (position, epoch, topic_id) == (5, 3, "first")
        if self.cut is not None:
            raise self.cut

    def start_offset(self, topic: str, partition: int, within_s: float | None = None) -> int:
        self.limits.append(within_s)
        self.asked.append(partition)
        if partition in self.wrong:
            raise self.wrong[partition]
        return self.starts[partition]

    def end_offset(self, topic: str, partition: int, within_s: float | None = None) -> int:
        self.limits.append(within_s)
        return 9

    def ask(self, error: TransportError) -> None:
        self.faults.ask(error, self.running)

    def doubtful(self) -> list[int]:
        return [where.partition for where in self.running if self.faults.is_doubtful(where)]

    def find(self) -> list[tuple[str, Exception]]:
        self.lane.run()
        return [(str(host.place.identity), error) for host, error in self.faults.find()]


class _Identified:
    def __init__(self, of: SimpleNamespace) -> None:
        self.of = of

    def __getattr__(self, name: str) -> Any:
        return getattr(self.of, name)


@pytest.fixture
def logs() -> Logs:
    return Logs()


def _out_of_range(number: int) -> OffsetOutOfRangeError:
    return OffsetOutOfRangeError(f"{TOPIC}-{number}", 5, 7, 9)


def test_a_log_that_was_trimmed_stops_its_task(logs: Logs) -> None:
    logs.starts[1] = 7
    logs.ask(_out_of_range(1))
    assert logs.doubtful() == [1]
    [(place, error)] = logs.find()
    assert (place, type(error)) == ("s/card/1", StateLeftBehindError)
    assert "offset 5 is next, the log has 7 to 9" in str(error)
    assert logs.asked == [1]


def test_one_that_has_other_records_stops_its_task(logs: Logs) -> None:
    logs.cut = LogCutError("s/card/0", "other records", 5, 3)
    logs.ask(_out_of_range(0))
    assert logs.find() == [("s/card/0", logs.cut)]


def test_one_that_is_well_is_read_again(logs: Logs) -> None:
    logs.ask(_out_of_range(0))
    assert not list(logs.faults.find())
    assert logs.doubtful() == [0]
    assert not logs.find()
    assert not logs.find()
    assert not logs.doubtful()


def test_an_error_that_names_none_may_be_about_each(logs: Logs) -> None:
    logs.ask(TopicMissingError("127.0.0.1:9092"))
    assert logs.doubtful() == [0, 1]
    # What is asked already is not asked again.
    logs.ask(TopicMissingError(f"127.0.0.1:9092: {TOPIC}-1"))
    assert not logs.find()
    assert sorted(logs.asked) == [0, 1]
    # All wait in one lane, and an answer about a log without a leader takes the whole time.
    assert all(each is not None and each <= 2.0 for each in logs.limits)


def test_one_without_a_leader_is_asked_again_after_a_while_and_others_meanwhile(logs: Logs) -> None:
    logs.wrong[0] = TransportUnavailableError(f"{TOPIC}-0", "the broker did not answer", "Try again")
    logs.starts[1] = 7
    logs.ask(_out_of_range(0))
    assert not logs.find()
    logs.ask(_out_of_range(1))
    assert [place for place, _ in logs.find()] == ["s/card/1"]
    assert 0 in logs.doubtful()
    logs.now_s += 1.0
    assert not [place for place, _ in logs.find() if place != "s/card/1"]
    assert 0 not in logs.doubtful()
    assert logs.asked == [0, 1]


def test_a_topic_is_gone_once_it_has_been_missing_for_a_while(logs: Logs) -> None:
    missing = logs.wrong[0] = TopicMissingError(f"127.0.0.1:9092: {TOPIC}-0")
    while logs.now_s < GONE_S:
        logs.ask(missing)
        assert not logs.find()
        logs.now_s += 0.1
        assert not logs.find()
        assert not logs.doubtful()
    logs.ask(missing)
    [(place, error)] = logs.find()
    assert (place, type(error)) == ("s/card/0", LogReplacedError)
    # A host that has the partition later begins anew.
    logs.running[TopicPartition(TOPIC, 0)] = logs._host(0)
    logs.faults.forget_others(logs.running.values())
    logs.ask(missing)
    assert not logs.find()


def test_a_host_that_has_stopped_meanwhile_is_not_stopped_again(logs: Logs) -> None:
    logs.starts[1] = 7
    logs.ask(_out_of_range(1))
    cast(Any, logs.running[TopicPartition(TOPIC, 1)]).of.is_running = False
    assert not logs.find()
