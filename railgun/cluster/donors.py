"""Decides which copies of a task on other nodes may give its data to a copy that lacks it. Pure.

A unit, the process that runs the copy that lacks it, asks (`railgun/unit/copies.py`).
"""

from collections.abc import Collection
from dataclasses import dataclass
from hashlib import blake2b

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyReport, CopyState


@dataclass(frozen=True, slots=True)
class Donor:
    """A copy that may give its data.

    position: that of its last durable checkpoint. A snapshot of the copy is at this offset or a later one.
    topic_id: the id of its log, if an operator has accepted another topic than the first one; else empty.
    gives: false if it runs an earlier release, which gives data to no other node.
    """

    copy: CopyName
    position: int
    topic_id: str = ""
    gives: bool = True


@dataclass(frozen=True, slots=True)
class Donors:
    """The copies of a task on other nodes, as far as they were heard.

    known: those that may give their data, in order of preference.
    may_come: whether more may be heard soon, because this unit has not listened for long.
    last: the copy that had the latest checkpoint when it was last heard, whatever has become of it; None if none had.
    made_of: the ids of the topics that data of the task was made of whose place another topic has taken.
    """

    known: tuple[Donor, ...] = ()
    may_come: bool = False
    last: Donor | None = None
    made_of: frozenset[str] = frozenset()


def donors_of(
    task: TaskKey, node: str, heard: Collection[tuple[bool, CopyReport]], *, may_come: bool
) -> Donors:
    """Return the donors of a task for a node.

    heard: the newest report of each copy, and whether it is fresh.

    A silent copy comes before one that answers, which has more to do. Among equals, a hash of task and node decides, so
    that a node that needs many tasks gets them from many nodes.
    """
    made_of = frozenset(report.replaced for fresh, report in heard if fresh and report.replaced)
    others = [
        (fresh, report) for fresh, report in heard if report.copy.node != node and report.checkpoint > 0
    ]
    able = [
        report
        for fresh, report in others
        if fresh and report.state.is_caught_up and not report.is_departing and report.gives
    ]
    able.sort(key=lambda report: (report.state is CopyState.ANSWERING, _turn(task, report.copy.node)))
    last = max((report for _, report in others), key=lambda report: report.checkpoint, default=None)
    return Donors(tuple(map(_donor, able)), may_come, None if last is None else _donor(last), made_of)


def _donor(report: CopyReport) -> Donor:
    return Donor(report.copy, report.checkpoint, report.topic_id, report.gives)


def _turn(task: TaskKey, node: str) -> bytes:
    return blake2b(f"{task}\0{node}".encode(), digest_size=8).digest()
