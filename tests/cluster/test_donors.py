"""Who may give the data of a task: copies of other nodes that have caught up, silent ones first, spread over nodes."""

from collections import Counter

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyReport, CopyState, LogPoint
from railgun.cluster.donors import Donor, donors_of
from tests.cluster.some_reports import report, status

_TASK = TaskKey("s", 1, "k", 0)


def _report(
    node: str, state: CopyState = CopyState.SILENT, checkpoint: int = 10, *, leaving: bool = False
) -> CopyReport:
    point = LogPoint(20)
    return CopyReport(CopyName(node, 0), 1, state, leaving, 20, point, 20, 0.2, {}, "", checkpoint)


def _names(*reports: CopyReport, task: TaskKey = _TASK) -> list[str]:
    found = donors_of(task, "here", [(True, report) for report in reports], may_come=False)
    return [each.copy.node for each in found.known]


def test_silent_copies_come_first() -> None:
    assert _names(_report("a", CopyState.ANSWERING), _report("b")) == ["b", "a"]
    assert _names(_report("a"), _report("b", CopyState.ANSWERING)) == ["a", "b"]


def test_others_give_nothing() -> None:
    assert _names(_report("here")) == []
    assert _names(_report("a", CopyState.BEHIND), _report("b", CopyState.FAILED)) == []
    assert _names(_report("a", CopyState.CLOSED), _report("b", leaving=True)) == []
    assert _names(_report("a", checkpoint=0)) == []
    assert donors_of(_TASK, "here", [(False, _report("a"))], may_come=True).known == ()


def test_the_last_that_had_it_is_told_whatever_has_become_of_it() -> None:
    heard = [
        (False, _report("a", CopyState.CLOSED, 30)),
        (True, _report("b", CopyState.BEHIND, 20)),
        (True, _report("here", CopyState.SILENT, 40)),
    ]
    found = donors_of(_TASK, "here", heard, may_come=True)
    assert (found.known, found.may_come, found.last) == ((), True, Donor(CopyName("a", 0), 30))
    assert donors_of(_TASK, "here", [], may_come=False).last is None


def test_an_earlier_release_gives_nothing_and_is_told_as_such() -> None:
    """Its reports have no id of the task's folder."""
    earlier, ours = (
        report(status(state=CopyState.SILENT, checkpoint=30, folder_id=folder_id), node=node)
        for node, folder_id in (("a", ""), ("b", "id"))
    )
    heard = [(True, said) for each in (earlier, ours) for _, said in each.by_task()]
    assert [each.copy.node for each in donors_of(_TASK, "here", heard, may_come=False).known] == ["b"]
    found = donors_of(_TASK, "here", heard[:1], may_come=False)
    assert (found.known, found.last) == ((), Donor(CopyName("a", 0), 30, gives=False))


def test_many_tasks_come_from_all_nodes() -> None:
    nodes = ("a", "b", "c")
    first = Counter(
        _names(*map(_report, nodes), task=TaskKey("s", 1, "k", partition))[0] for partition in range(300)
    )
    assert set(first) == set(nodes)
    assert min(first.values()) > 70
