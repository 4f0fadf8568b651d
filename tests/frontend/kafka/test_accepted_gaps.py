"""Which state goes on behind a gap, what is refused, and what an operator is told."""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pytest

from frontend.backend.cluster import GapOrder
from frontend.kafka.accepted_gaps import FoundGap, Standing, found_gap, standing_of, told_gap
from frontend.problems import ProblemError
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState, Gap, LogPoint
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import DiskCopy, NodeRecord
from railgun.cluster.report_table import ReportedCopy
from railgun.cluster.reports import Fetching, LeftBehind
from railgun.messaging.transport import TopicPartition, Transport
from railgun.registry.kafka_registry import KafkaRegistry
from tests.cluster.some_reports import TASK, status

WHERE = TopicPartition("railgun.s.by.k", 0)
ACCEPTED = Gap(LogPoint(80, 4), 100, 6_000, (130, 134), 9, "id")


@dataclass
class Broker:
    """A log, and the registry."""

    start: int = 100
    end: int = 120
    appended_ms: int = 5_000
    told: int = 0

    def start_offset(self, *where: Any) -> int:
        return self.start

    def end_offset(self, *where: Any) -> int:
        return self.end

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        return dict.fromkeys(topics, "id")

    def read(self, topic: str, partition: int, offset: int, *bounds: int) -> Any:
        assert offset == self.start
        return _Read(self)

    def tell_again(self, task: TaskKey) -> tuple[tuple[int, int], int]:
        self.told += 1
        return (130, 134), 9

    def found(
        self, standing: Standing, node: str = "", agreed: tuple[int, int] | None = None
    ) -> FoundGap | Gap:
        order = GapOrder(node, agreed)
        return found_gap(cast(Transport, self), WHERE, TaskKey(**TASK), standing, 1_000, order)  # type: ignore[arg-type]

    def accepted(self, standing: Standing) -> Gap:
        found = self.found(standing)
        assert isinstance(found, FoundGap)
        return told_gap(cast(KafkaRegistry, self), TaskKey(**TASK), found)  # type: ignore[arg-type]


class _Read:
    def __init__(self, broker: Broker) -> None:
        self.appended_ms = broker.appended_ms

    def __len__(self) -> int:
        return 1


def _copy(node: str, **more: Any) -> ReportedCopy:
    return ReportedCopy(CopyName(node, 0), status(**more), 0.0, 1.0)


def _open(node: str, state: CopyState = CopyState.ANSWERING, **more: Any) -> ReportedCopy:
    return _copy(node, state=state, folder_id="f", **more)


def _behind(node: str, position: int, epoch: int = 4, clock_ms: int | None = 4_000) -> ReportedCopy:
    left = LeftBehind(position=position, epoch=epoch, clock_ms=clock_ms)
    return _copy(node, state=CopyState.FAILED, left_behind=left)


def test_the_newest_state_that_is_heard_crosses() -> None:
    broker = Broker()
    standing = Standing([_behind("a", 70, 5), _behind("b", 80, 4), _copy("c", state=CopyState.FAILED)], [])
    found = broker.found(standing)
    assert isinstance(found, FoundGap)
    assert broker.told == 0, "whoever only asks changes nothing"
    assert found.shown() == {
        "node": "b", "first": 80, "offset": 100, "records": 20, "clock_ms": 4_000, "gap_ms": 6_000,
    }  # fmt: skip
    assert broker.accepted(standing) == ACCEPTED


@pytest.mark.parametrize(
    ("clock_ms", "end", "gap_ms"), [(4_000, 120, 6_000), (9_000, 120, 10_000), (None, 120, 6_000)]
)
def test_no_event_in_the_gap_is_later_than_it_says(clock_ms: int | None, end: int, gap_ms: int) -> None:
    standing = Standing([_behind("a", 70, clock_ms=clock_ms)], [])
    assert Broker(end=end).accepted(standing).gap_ms == gap_ms


def test_where_no_record_is_left_it_is_now() -> None:
    before_ms = time.time_ns() // 1_000_000
    gap_ms = Broker(end=100).accepted(Standing([_behind("a", 70)], [])).gap_ms
    assert before_ms + 1_000 <= gap_ms <= time.time_ns() // 1_000_000 + 1_000


@pytest.mark.parametrize("state", [CopyState.ANSWERING, CopyState.SILENT, CopyState.BEHIND])
def test_a_copy_that_goes_on_makes_it_needless(state: CopyState) -> None:
    opening = _open("c", CopyState.BEHIND, fetching=Fetching())
    with pytest.raises(ProblemError, match=f"b/0 of s/k/0 is {state}, and has not failed"):
        Broker().found(Standing([_behind("a", 70), opening, _open("b", state)], []))


@pytest.mark.parametrize("accepted", [None, ACCEPTED])
@pytest.mark.parametrize(
    ("opening", "does"),
    [
        (_copy("b", state=CopyState.BEHIND), "is being opened"),
        (_open("b", CopyState.BEHIND, fetching=Fetching(donor="a/0")), "gets its data from another node"),
    ],
)
def test_copies_that_only_open_may_need_an_order(
    accepted: Gap | None, opening: ReportedCopy, does: str
) -> None:
    """Neither is an earlier order what they follow, nor is there nothing to accept: they have not found out."""
    standing = Standing([_behind("a", 70), opening], [], accepted=accepted)
    for node in ("", "a"):
        with pytest.raises(ProblemError, match=f"not yet: b/0 of s/k/0 {does}.* in a few seconds"):
            Broker().found(standing, node)


@pytest.mark.parametrize(
    "heard", [[], [_copy("a", state=CopyState.FAILED)], [_copy("a", state=CopyState.CLOSED)]]
)
def test_there_is_no_gap_unless_a_copy_has_found_one(heard: list[ReportedCopy]) -> None:
    with pytest.raises(ProblemError, match="there is no gap to accept"):
        Broker().found(Standing(heard, []))


@pytest.mark.parametrize(
    "away",
    [_copy("b", state=CopyState.CLOSED, checkpoint=90), _behind("b", 90)],
    ids=["closed", "failed"],
)
def test_a_newer_state_on_a_node_that_does_not_run_has_to_be_given_up(away: ReportedCopy) -> None:
    standing = Standing([_behind("a", 80)], [away])
    with pytest.raises(ProblemError, match="b/0, which is not heard, has a checkpoint of s/k/0 at offset 90"):
        Broker().found(standing)
    assert isinstance(Broker().found(standing, "a"), FoundGap)
    older = _copy("b", state=CopyState.CLOSED, checkpoint=80)
    assert isinstance(Broker().found(Standing([_behind("a", 80)], [older])), FoundGap)


@pytest.mark.parametrize("state", [CopyState.FAILED, CopyState.CLOSED])
def test_a_newer_state_of_a_copy_that_failed_otherwise_has_to_be_given_up(state: CopyState) -> None:
    """A damaged file may be all that keeps it from going on."""
    standing = Standing([_behind("a", 80), _copy("b", state=state, checkpoint=90)], [])
    with pytest.raises(ProblemError, match=f"b/0, which is {state}, has a checkpoint of s/k/0 at offset 90"):
        Broker().found(standing)
    assert isinstance(Broker().found(standing, "a"), FoundGap)


def test_only_the_gap_that_was_shown_is_accepted() -> None:
    standing = Standing([_behind("a", 80)], [])
    assert isinstance(Broker().found(standing, agreed=(80, 100)), FoundGap)
    with pytest.raises(ProblemError, match="is from offset 80 to 110 now, and not the one in the order"):
        Broker(start=110).found(standing, agreed=(80, 100))


def test_a_disk_that_nobody_reports_of_has_to_be_given_up() -> None:
    for runs, remedy in (
        (False, "start it, or"),
        (True, "it runs: it gets a copy within cluster.replace_after_s"),
    ):
        standing = Standing([_behind("a", 80)], [], {"b": runs})
        with pytest.raises(ProblemError, match=f"b has data of s/k/0 on its disk, .*: {remedy}"):
            Broker().found(standing)
        assert isinstance(Broker().found(standing, "a"), FoundGap)


def test_a_folder_without_a_checkpoint_has_nothing_that_could_be_newer() -> None:
    """It is left of a copy that has moved before it took one."""
    task, observed = TaskKey(**TASK), ObservedCluster(ClusterPolicy(), 0.0)  # type: ignore[arg-type]
    for name, has_checkpoint in (("b", True), ("c", False)):
        disk = [DiskCopy(**TASK, size_bytes=100, has_checkpoint=has_checkpoint)]  # type: ignore[arg-type]
        record = NodeRecord(name=name, folder=name, incarnation=1, host="h", units=1, release="1", disk=disk)
        observed.take_statement(record, 0.0)
    assert standing_of(observed, task, 0.0).silent_disks == {"b": False}


def test_a_node_without_such_a_state_is_not_taken() -> None:
    with pytest.raises(
        ProblemError, match="c has no copy of s/k/0 that its log left behind; these have: a, b"
    ):
        Broker().found(Standing([_behind("a", 80), _behind("b", 70)], []), "c")


def test_a_second_order_about_a_gap_changes_nothing() -> None:
    stopped, goes_on = [_behind("b", 80)], [_open("b"), _behind("a", 70)]
    assert Broker().found(Standing(stopped, [], accepted=ACCEPTED)) == ACCEPTED
    assert Broker().found(Standing(goes_on, [], accepted=ACCEPTED)) == ACCEPTED
    opening = [_copy("c", state=CopyState.BEHIND), _open("b", CopyState.BEHIND)]
    assert Broker().found(Standing(opening, [], accepted=ACCEPTED)) == ACCEPTED


@pytest.mark.parametrize(
    ("broker", "heard"),
    [(Broker(start=110), _behind("b", 80)), (Broker(), _behind("b", 70)), (Broker(), _behind("b", 80, 3))],
)
def test_another_gap_or_state_needs_another_order(broker: Broker, heard: ReportedCopy) -> None:
    assert isinstance(broker.found(Standing([heard], [], accepted=ACCEPTED)), FoundGap)


def test_a_state_behind_the_gap_that_has_not_crossed_it_may_go_on_without_a_loss() -> None:
    """All that had crossed it are gone for good."""
    found = Broker(start=105, end=105).found(Standing([_behind("c", 105)], [], accepted=ACCEPTED))
    assert isinstance(found, FoundGap)
    assert (found.offset, found.shown()["records"]) == (105, 0)
