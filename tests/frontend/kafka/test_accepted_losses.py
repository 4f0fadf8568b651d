"""What an order to accept a loss does: which topic it takes for the new one, and what it leaves alone."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

import pytest

from frontend.kafka.accepted_losses import AcceptedLoss, Outcome, accepted_loss, check_goes_on
from frontend.problems import ProblemError
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyState, Cut
from railgun.cluster.reports import CopyStatus, Fetching, LeftBehind
from railgun.messaging.transport import TopicPartition, Transport
from railgun.registry.kafka_registry import KafkaRegistry
from railgun.registry.topics import Topics
from tests.cluster.some_reports import TASK, status

TOPIC = "railgun.s.by.k"
LOSS = Cut(250, 2)


class Broker:
    """The broker and the registry.

    topic_id: of the task's topic; None if it is gone.  start, end: of its log.  done: what was done to it.
    """

    def __init__(self, topic_id: str | None) -> None:
        self.topic_id, self.topics = topic_id, Topics()
        self.done: list[str] = []
        self.start, self.end = 0, 400

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        assert topics == [TOPIC]
        return {} if self.topic_id is None else {TOPIC: self.topic_id}

    def start_offset(self, topic: str, partition: int) -> int:
        return self.start

    def end_offset(self, topic: str, partition: int) -> int:
        return self.end

    def make_task_topic(self, task: TaskKey) -> None:
        self.done.append("made")
        self.topic_id = "made"

    def tell_anew(self, task: TaskKey) -> int:
        self.done.append("told")
        return 7

    def found(self, copies: Sequence[CopyStatus], accepted: Cut | None = None) -> AcceptedLoss:
        registry, task = cast(KafkaRegistry, self), TaskKey(**TASK)
        return accepted_loss(cast(Transport, self), registry, task, copies, copies, accepted)

    def check(self, *heard: CopyStatus, cut: Cut = LOSS) -> None:
        check_goes_on(cast(Transport, self), TopicPartition(TOPIC, 0), TaskKey(**TASK), cut, heard)


def _open(**more: Any) -> CopyStatus:
    return status(folder_id="f", **more)


def _failed(**more: Any) -> CopyStatus:
    return status(state=CopyState.FAILED, replied=300, **more)


def test_a_topic_that_was_made_anew_is_told_the_definitions_and_accepted() -> None:
    broker = Broker("second")
    found = broker.found([_failed(replaced="first"), _failed(replaced="first"), status(replied=900)])
    assert found == AcceptedLoss(Outcome.BEGUN_ANEW, Cut(7, -1, "second", 7), 300)
    assert broker.done == ["told"]


@pytest.mark.parametrize("replaced", ["first", ""])
def test_one_that_is_gone_is_made(replaced: str) -> None:
    broker = Broker(None)
    assert broker.found([_failed(replaced=replaced)]).cut == Cut(7, -1, "made", 7)
    assert broker.done == ["made", "told"]


def test_one_that_an_order_made_which_was_cut_off_is_taken_by_the_next_one() -> None:
    broker = Broker("made")
    broker.end = 0
    assert broker.found([_failed(replaced="")]).cut == Cut(7, -1, "made", 7)
    assert broker.done == ["told"]


@pytest.mark.parametrize("copies", [[], [status()], [_failed()]])
def test_nothing_is_made_where_no_copy_has_missed_it(copies: list[CopyStatus]) -> None:
    """It may not be seen for a moment after a broker's start."""
    broker = Broker(None)
    with pytest.raises(
        ProblemError, match=f"not yet: the topic {TOPIC} is gone, and no copy of s/k/0 has found"
    ):
        broker.found(copies)
    assert not broker.done


def test_there_is_nothing_to_accept_unless_a_copy_has_found_a_loss() -> None:
    with pytest.raises(ProblemError, match="there is nothing to accept"):
        Broker("first").found([_open()])


@pytest.mark.parametrize("accepted", [None, Cut(80, 3)])
def test_a_log_that_is_shorter_than_what_was_processed_is_not_called_whole(accepted: Cut | None) -> None:
    """The topic may be another one, or have lost its end. Copies find that within seconds."""
    with pytest.raises(
        ProblemError, match="not yet: the log ends at offset 400, and was processed up to 401"
    ):
        Broker("first").found([_open(position=401)], accepted)
    # What a copy had processed that has stopped since says nothing.
    with pytest.raises(ProblemError, match="nothing to accept"):
        Broker("first").found([_failed(position=401), _open(position=400)])


@pytest.mark.parametrize("replaced", ["first", ""])
def test_one_that_is_there_again_is_left_alone(replaced: str) -> None:
    broker = Broker("first")
    with pytest.raises(ProblemError, match=f"{TOPIC} is there.*start its nodes again"):
        broker.found([_failed(replaced=replaced)])
    assert not broker.done


def test_a_second_order_changes_nothing() -> None:
    broker, accepted = Broker("second"), Cut(7, -1, "second", 7)
    assert broker.found([_failed(replaced="first")], accepted) == AcceptedLoss(
        Outcome.ACCEPTED_BEFORE, accepted, 0
    )
    assert broker.found([_open()], Cut(80, 3)) == AcceptedLoss(Outcome.ACCEPTED_BEFORE, Cut(80, 3), 0)
    assert broker.found([_failed(lost=(90, 2))], Cut(80, 3)).outcome is Outcome.ACCEPTED_BEFORE
    assert not broker.done


@pytest.mark.parametrize(
    "heard",
    [
        [],
        [status(state=CopyState.BEHIND)],
        [_open(state=CopyState.BEHIND, fetching=Fetching()), _failed()],
        [_failed(), _open(state=CopyState.CLOSED)],
    ],
    ids=["none", "opening", "fetching", "failed_otherwise"],
)
def test_an_order_that_no_copy_follows_is_not_called_accepted_before(heard: list[CopyStatus]) -> None:
    """They may find another loss, and need another order."""
    with pytest.raises(
        ProblemError, match="not yet: an earlier order about s/k/0 stands, and no copy follows it"
    ):
        Broker("first").found(heard, Cut(80, 3))


def test_a_copy_that_goes_on_follows_it() -> None:
    heard = [status(state=CopyState.BEHIND), _open(state=CopyState.BEHIND)]
    assert Broker("first").found(heard, Cut(80, 3)).outcome is Outcome.ACCEPTED_BEFORE


@pytest.mark.parametrize("topic_id", ["third", None])
def test_one_that_is_replaced_once_more_is_not_called_accepted_before_copies_notice(
    topic_id: str | None,
) -> None:
    broker = Broker(topic_id)
    with pytest.raises(ProblemError, match=f"not yet: the topic {TOPIC} is (gone|another one)"):
        broker.found([_open()], Cut(7, -1, "second", 7))
    assert not broker.done


def test_one_that_is_replaced_once_more_is_accepted_again() -> None:
    broker = Broker("third")
    found = broker.found([_failed(replaced="second")], Cut(7, -1, "second", 7))
    assert (found.outcome, found.cut.topic_id) == (Outcome.BEGUN_ANEW, "third")


@pytest.mark.parametrize(
    "stopped",
    [
        _failed(lost=(300, 1)),
        _failed(lost=(300, 1), checkpoint=290),
        _failed(lost=(300, 1), checkpoint=180),
        _failed(left_behind=LeftBehind(position=0)),
    ],
)
def test_a_task_whose_log_has_lost_its_beginning_too_needs_another_order(stopped: CopyStatus) -> None:
    """Each time the order is given."""
    broker = Broker("first")
    broker.start = 200
    with pytest.raises(ProblemError, match=r"the loss is accepted, but no copy .* accept-gap s/k/0`"):
        broker.check(stopped, _failed())


@pytest.mark.parametrize(
    "other",
    [status(), status(state=CopyState.BEHIND), _failed(lost=(300, 1), checkpoint=240)],
    ids=["answering", "behind", "before_the_loss"],
)
def test_a_copy_that_has_what_the_log_lacks_is_enough(other: CopyStatus) -> None:
    broker = Broker("first")
    broker.start = 200
    broker.check(_failed(lost=(300, 1)), other)


def test_so_is_a_log_with_its_beginning() -> None:
    broker = Broker("first")
    broker.check(_failed(lost=(300, 1)))
    broker.start = 7
    broker.check(_failed(replaced="before"), _failed(lost=(9, 1)), cut=Cut(7, -1, "first", 7))
    broker.start = 8
    broker.check(_failed(), cut=Cut(7, -1, "first", 7))
