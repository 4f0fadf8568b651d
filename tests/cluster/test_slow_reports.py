"""With very many copies units report less often. What is heard of them counts for as long."""

from dataclasses import replace

from railgun.catalog.task_key import TaskKey
from railgun.cluster.answering import Answering
from railgun.cluster.copies import CopyName, CopyReport, CopyState, LogPoint
from railgun.cluster.health import cluster_health
from railgun.cluster.hearing import Hearing, Timing
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.plan import Plan, PlannedCopy
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.progress import Progress
from railgun.cluster.report_table import ReportTable, replaced
from railgun.cluster.reports import encode_report
from tests.cluster.some_reports import TASK, report, status

NAME = TaskKey(*TASK.values())  # type: ignore[arg-type]
HERE, OTHER = CopyName("node-1", 0), CopyName("node-2", 0)
PLAN = Plan(1, {NAME: (PlannedCopy(HERE, "f"),)}, {NAME: (HERE,)}, policy=ClusterPolicy(copies=1))
_OFTEN_MS, _SELDOM_MS = 200, 6_000


def _able(interval_ms: int, after_s: float) -> bool:
    observed = ObservedCluster(ClusterPolicy(copies=1), 0.0)
    observed.take_report(encode_report(report(status(), interval_ms=interval_ms)), 100.0)
    now_s = 100.0 + after_s
    is_short = bool(cluster_health(observed, PLAN, now_s).tasks_short)
    (task,) = observed.view({NAME: False}, PLAN, now_s).tasks
    assert is_short is (HERE not in task.heard)
    return not is_short


def test_a_copy_counts_for_five_of_its_reports() -> None:
    assert _able(_OFTEN_MS, 4.9)
    assert not _able(_OFTEN_MS, 5.1)
    assert _able(_SELDOM_MS, 29.0)
    assert not _able(_SELDOM_MS, 31.0)


def test_a_node_is_heard_and_nobody_was_away_between_two_reports() -> None:
    progress, said = Progress(300.0), report(status(state=CopyState.BEHIND), interval_ms=_SELDOM_MS)
    progress.hear(said, 0.0)
    for now_s in range(6, 600, 6):
        assert progress.is_heard("node-1", now_s - 0.1)
        progress.hear(said, float(now_s))
    # Its copy has come no nearer all the time; nobody excuses it as unheard.
    assert progress.well_s(NAME, HERE) == 0.0
    assert not progress.is_heard("node-1", 594 + 31.0)


def test_two_that_answer_are_told_from_one_that_was_replaced() -> None:
    table = ReportTable()
    table.take(encode_report(report(status(), node="node-1", interval_ms=_SELDOM_MS)), 0.0)
    table.take(encode_report(report(status(), node="node-2", interval_ms=_SELDOM_MS)), 5.0)
    assert replaced(table.copies(NAME), 1.0) == []
    table.take(encode_report(report(status(), node="node-2", interval_ms=_SELDOM_MS)), 31.0)
    assert replaced(table.copies(NAME), 1.0) == [HERE]


def test_a_copy_that_answers_makes_progress_from_report_to_report() -> None:
    """It is first, and another one that answers stops for it, whenever its last report came."""
    timing = Timing()
    hearing = Hearing(timing, 0.0)
    other = Answering(OTHER, [HERE, OTHER], timing, hearing)
    now_s, at = 0.0, 0
    said = CopyReport(
        HERE, 1, CopyState.ANSWERING, False, 0, LogPoint(0), 1_000_000, interval_s=_SELDOM_MS / 1000
    )
    for step in range(200):
        now_s += 0.5
        hearing.look(now_s)
        hearing.read(hearing.write(now_s, 0.2), now_s)
        if step % 12 == 0:
            at += 100
            said = replace(said, position=at, replied=LogPoint(at))
            other.hear(said, now_s)
        assert not other.decide(now_s, at, 1_000_000)
