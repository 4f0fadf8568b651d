"""What a front-end notes of its cluster, by comparing looks: nodes, units and copies, each with its error."""

from typing import Any

import msgspec

from railgun.catalog.task_key import TaskKey
from railgun.cli.cluster import as_text
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.hearing import Timing
from railgun.cluster.lately import KEPT_MAX, Lately
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.overview import overview
from railgun.cluster.plan import Plan, PlannedCopy
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import EndedUnit, NodeRecord
from railgun.cluster.reports import CopyStatus, UnitReport, encode_report
from railgun.cluster.silence import CLOSES_S
from railgun.node.ending import DEADLINES
from tests.cluster.clusters import task_names

ONE, OTHER, THIRD = task_names(3)
A, B, C = (CopyName(f"node-{name}", 0) for name in "abc")
SINCE_MS = 1_000_000


class Cluster:
    """Three nodes, of which the first two have the copies of two tasks. The clocks advance by a second per look."""

    def __init__(self) -> None:
        self.observed = ObservedCluster(ClusterPolicy(), 0.0)
        self.states: dict[CopyName, dict[TaskKey, tuple[CopyState, str]]] = {A: {}, B: {}, C: {}}
        self.silent: set[CopyName] = set()
        self.generation = 1
        self.now_s = 0.0
        for copy in (A, B, C):
            self.says(copy.node)
        self.live("abc")
        self.planned(1, {ONE: (A, B), OTHER: (B, A)})
        for task in (ONE, OTHER):
            self.has(A, task, CopyState.SILENT)
            self.has(B, task, CopyState.SILENT)
        self.lately = Lately(SINCE_MS, self.now_s)
        self.look()

    def says(self, node: str, incarnation: int = 1, *ended: EndedUnit) -> None:
        self.observed.take_statement(
            NodeRecord(
                name=node,
                folder="f",
                incarnation=incarnation,
                host="h",
                units=1,
                release="1",
                ended=list(ended),
            ),
            self.now_s,
        )

    def live(self, names: str) -> None:
        self.observed.take_members([f"node-{name}" for name in names], self.now_s)

    def planned(self, epoch: int, copies: dict[TaskKey, tuple[CopyName, ...]]) -> None:
        found = {task: tuple(PlannedCopy(copy, "f") for copy in own) for task, own in copies.items()}
        self.plan = Plan(epoch, found, policy=ClusterPolicy(copies=2))

    def has(self, copy: CopyName, task: TaskKey, state: CopyState, failure: str = "") -> None:
        self.states[copy][task] = state, failure

    def look(self, after_s: float = 1.0) -> None:
        self.now_s += after_s
        for copy, own in self.states.items():
            if copy in self.silent:
                continue
            copies = [
                CopyStatus(
                    **task._asdict(),
                    state=state,
                    leaving=state is CopyState.CLOSED,
                    failure=failure,
                    position=5,
                    replied=5,
                    end=9,
                )
                for task, (state, failure) in own.items()
            ]
            report = UnitReport(
                node=copy.node,
                unit=copy.unit,
                generation=self.generation,
                interval_ms=200,
                copies=copies,
                said_ms=self.now_ms,
            )
            self.observed.take_report(encode_report(report), self.now_s)
        self.lately.look(self.observed, self.plan, self.now_s, self.now_ms)

    def looks(self, times: int) -> None:
        for _ in range(times):
            self.look()

    @property
    def now_ms(self) -> int:
        return SINCE_MS + round(1_000 * self.now_s)

    def entries(self) -> list[dict[str, Any]]:
        found = self.lately.shown(self.now_s)
        assert found["since_ms"] == SINCE_MS
        entries: list[dict[str, Any]] = found["entries"]
        return entries

    def texts(self) -> list[str]:
        """The newest first."""
        return [each["text"] for each in self.entries()]


def test_what_stands_at_the_first_look_and_what_stays_is_no_news() -> None:
    cluster = Cluster()
    cluster.look()
    assert cluster.entries() == []


def test_nodes_go_come_back_and_come_anew() -> None:
    cluster = Cluster()
    cluster.live("ab")
    cluster.look()
    assert cluster.entries() == [
        {
            "kind": "node_gone",
            "at_ms": cluster.now_ms,
            "first_ms": cluster.now_ms,
            "times": 1,
            "text": "node-c is gone",
        }
    ]
    cluster.live("abcd")
    cluster.look()
    assert cluster.texts() == ["node-d is new", "node-c is back", "node-c is gone"]
    # A start of it that is heard a moment after it came is no further news; one long after is.
    cluster.says("node-c", 2)
    cluster.look()
    assert len(cluster.entries()) == 3
    cluster.look(60.0)
    cluster.says("node-c", 3)
    cluster.look()
    assert cluster.texts()[0] == "node-c was started again"


def test_a_node_that_closes_its_copies_was_stopped_and_the_takers_of_its_tasks_are_counted() -> None:
    cluster = Cluster()
    tasks = [ONE, OTHER, THIRD]
    cluster.planned(2, dict.fromkeys(tasks, (A, B, C)))
    for task in tasks:
        cluster.has(A, task, CopyState.ANSWERING)
    cluster.look()
    # It leaves the group while it still closes its copies, and others have not taken over all of them.
    for task in (ONE, OTHER):
        cluster.has(A, task, CopyState.CLOSED)
    cluster.has(B, ONE, CopyState.ANSWERING)
    cluster.live("bc")
    cluster.look()
    assert cluster.entries() == []
    cluster.has(A, THIRD, CopyState.CLOSED)
    cluster.has(B, OTHER, CopyState.ANSWERING)
    cluster.look()
    (stopped,) = cluster.entries()
    assert stopped["kind"] == "node_stopped"
    assert stopped["text"] == "node-a has left after closing its copies; node-b took over 2 tasks"
    cluster.has(C, THIRD, CopyState.ANSWERING)
    cluster.look()
    taken = "node-a has left after closing its copies; node-b took over 2 tasks, node-c 1"
    assert cluster.texts() == [taken]
    # What moves on once it is back is not told of it.
    cluster.live("abc")
    cluster.look()
    cluster.has(B, THIRD, CopyState.ANSWERING)
    cluster.has(C, THIRD, CopyState.SILENT)
    cluster.look()
    assert cluster.texts() == ["node-a is back", taken]


def test_a_node_that_falls_silent_was_lost() -> None:
    cluster = Cluster()
    cluster.has(A, ONE, CopyState.ANSWERING)
    cluster.look()
    # Others take over long before the group misses it.
    cluster.silent.add(A)
    cluster.has(B, ONE, CopyState.ANSWERING)
    cluster.look()
    cluster.live("bc")
    cluster.looks(round(CLOSES_S))
    # It may be stopped in order, and not have said so yet.
    assert cluster.entries() == []
    cluster.looks(2)
    (lost,) = cluster.entries()
    assert lost["kind"] == "node_lost"
    lost_text = "node-a was lost: it fell silent without closing its copies; node-b took over 1 task"
    assert lost["text"] == lost_text
    assert "node-a was lost" in as_text(
        {
            **overview(cluster.observed, cluster.plan, "node-b", [ONE, OTHER], cluster.now_s),
            "lately": cluster.lately.shown(cluster.now_s),
        }
    )


def test_a_stop_that_takes_long_is_one_in_order() -> None:
    """A unit writes no report while it waits for replies and takes its last checkpoints."""
    assert DEADLINES.acknowledged_s + Timing().leave_s <= CLOSES_S
    cluster = Cluster()
    cluster.live("bc")
    cluster.silent.add(A)
    cluster.looks(round(DEADLINES.acknowledged_s))
    assert cluster.entries() == []
    cluster.silent.remove(A)
    for task in (ONE, OTHER):
        cluster.has(A, task, CopyState.CLOSED)
    cluster.look()
    assert cluster.texts() == ["node-a has left after closing its copies"]


def test_who_hears_nobody_calls_nobody_lost() -> None:
    cluster = Cluster()
    cluster.live("bc")
    cluster.silent |= {A, B, C}
    cluster.looks(62)
    assert cluster.texts() == ["node-a is gone"]


def test_a_node_that_was_killed_long_ago_takes_over_nothing() -> None:
    """Its last report says for ever that it answers."""
    cluster = Cluster()
    cluster.has(A, ONE, CopyState.ANSWERING)
    cluster.look()
    cluster.silent.add(A)
    cluster.has(B, ONE, CopyState.ANSWERING)
    cluster.live("bc")
    cluster.looks(40)
    lost = "node-a was lost: it fell silent without closing its copies; node-b took over 1 task"
    assert cluster.texts() == [lost]
    for task in (ONE, OTHER):
        cluster.has(B, task, CopyState.CLOSED)
    cluster.live("c")
    cluster.looks(10)
    assert cluster.texts() == ["node-b has left after closing its copies", lost]


def test_it_is_told_whose_units_went_on_and_not_known_how_a_node_went_whose_units_were_killed() -> None:
    cluster = Cluster()
    cluster.live("bc")
    cluster.looks(70)
    (apart,) = cluster.entries()
    assert apart["kind"] == "node_apart"
    assert apart["text"] == "node-a has left the group of nodes, and its units went on"
    # For a unit that was killed its node says that it closed, and goes then.
    for task in (ONE, OTHER):
        cluster.has(B, task, CopyState.CLOSED)
    cluster.look()
    cluster.silent.add(B)
    cluster.says("node-b", 1, EndedUnit(unit=0, times=1, last_ms=cluster.now_ms, error="killed by signal 9"))
    cluster.live("c")
    cluster.look()
    assert cluster.texts()[:2] == ["unit 0 of node-b ended: killed by signal 9", "node-b is gone"]


def test_units_of_a_node_that_was_started_again_have_not_gone_on() -> None:
    cluster = Cluster()
    cluster.silent.add(A)
    cluster.live("bc")
    cluster.look()
    begun = CopyStatus(**ONE._asdict(), state=CopyState.BEHIND, position=5, replied=5, end=9)
    report = UnitReport(node="node-a", unit=0, generation=2, interval_ms=200, copies=[begun])
    cluster.observed.take_report(encode_report(report), cluster.now_s)
    cluster.live("abc")
    cluster.look()
    assert cluster.texts() == ["node-a is back", "node-a is gone"]


def test_a_copy_that_failed_is_well_again_once_it_could_answer() -> None:
    cluster = Cluster()
    for task in (ONE, OTHER):
        cluster.has(A, task, CopyState.FAILED, "damaged")
    cluster.look()
    for task in (ONE, OTHER):
        cluster.has(A, task, CopyState.BEHIND)
    cluster.look()
    assert len(cluster.entries()) == 1
    cluster.has(A, ONE, CopyState.SILENT)
    cluster.look()
    cluster.look()
    well = cluster.entries()[0]
    assert (well["kind"], well["text"]) == ("copy_well", f"{ONE} on node-a/0 is well again")
    cluster.has(A, OTHER, CopyState.ANSWERING)
    cluster.look()
    assert cluster.texts()[0] == f"2 copies on node-a are well again: {ONE}, {OTHER}"
    # One that the plan names no more is not waited for.
    cluster.has(A, ONE, CopyState.FAILED, "damaged")
    cluster.look()
    cluster.planned(2, {ONE: (B, C), OTHER: (B, A)})
    cluster.look()
    cluster.has(A, ONE, CopyState.SILENT)
    cluster.look()
    assert "failed" in cluster.texts()[0]


def test_looks_that_fail_are_told() -> None:
    cluster = Cluster()
    shown = cluster.lately.shown(cluster.now_s + 29.0)
    assert (shown["looked_ms"], shown["overdue"]) == (cluster.now_ms, False)
    assert cluster.lately.shown(cluster.now_s + 31.0)["overdue"]
    command = as_text(
        {
            **overview(cluster.observed, cluster.plan, "node-a", [ONE, OTHER], cluster.now_s),
            "lately": cluster.lately.shown(cluster.now_s + 31.0),
        }
    )
    not_known = "lately: not looked since 1970-01-01T00:16:41Z; what has happened after that is not known\n"
    assert not_known in command
    cluster.look(95.0)
    assert [(each["kind"], each["text"]) for each in cluster.entries()] == [
        ("not_looked", "the cluster could not be looked at for 1 min 35 s")
    ]
    assert not cluster.lately.shown(cluster.now_s)["overdue"]
    never = Lately(SINCE_MS, 0.0)
    assert (never.shown(5.0)["looked_ms"], never.shown(5.0)["overdue"]) == (None, False)
    assert never.shown(31.0)["overdue"]


def test_a_copy_that_fails_is_noted_with_its_error_and_the_one_that_replaces_it() -> None:
    cluster = Cluster()
    cluster.has(A, ONE, CopyState.FAILED, "TaskError: /data/7: a file\nis in its place")
    cluster.look()
    cluster.look()
    failed = f"{ONE} on node-a/0 failed: TaskError: /data/7: a file is in its place"
    assert cluster.texts() == [failed]
    cluster.planned(2, {ONE: (B, C), OTHER: (B, A)})
    cluster.has(C, ONE, CopyState.BEHIND)
    del cluster.states[A][ONE]
    cluster.look()
    assert cluster.texts() == [failed]
    cluster.has(C, ONE, CopyState.SILENT)
    cluster.look()
    cluster.look()
    assert cluster.texts() == [f"1 copy was made on node-c: {ONE}", failed]


def test_a_copy_that_fails_again_and_again_and_many_that_fail_alike_are_one_entry() -> None:
    cluster = Cluster()
    for number in range(3):
        cluster.has(A, ONE, CopyState.FAILED, f"damaged at byte {number}")
        cluster.look()
        cluster.has(A, ONE, CopyState.BEHIND)
        cluster.look()
    (entry,) = cluster.entries()
    assert entry["text"] == f"{ONE} on node-a/0 failed, 3 times; last: damaged at byte 2"
    assert (entry["times"], entry["at_ms"] - entry["first_ms"]) == (3, 4_000)
    for task in (ONE, OTHER):
        cluster.has(A, task, CopyState.FAILED, "damaged at byte 9")
    cluster.look()
    assert cluster.texts() == [f"2 copies on node-a failed: {ONE}, {OTHER}; last: damaged at byte 9"]
    cluster.has(B, ONE, CopyState.FAILED, "no space left")
    cluster.look()
    assert cluster.texts()[0] == f"{ONE} on node-b/0 failed: no space left"


def test_the_first_copies_of_a_new_task_are_no_news_and_one_in_another_folder_is() -> None:
    cluster = Cluster()
    own: dict[TaskKey, tuple[CopyName, ...]] = {ONE: (A, B), OTHER: (B, A), THIRD: (A, B)}
    cluster.planned(2, own)
    cluster.has(A, THIRD, CopyState.ANSWERING)
    cluster.look()
    assert cluster.entries() == []
    found = {task: tuple(PlannedCopy(copy, "g" if copy == B else "f") for copy in own[task]) for task in own}
    cluster.plan = Plan(3, found, policy=ClusterPolicy(copies=2))
    cluster.look()
    assert cluster.texts() == [f"2 copies were made on node-b: {ONE}, {OTHER}"]


def test_units_that_end_are_counted_with_their_last_error() -> None:
    cluster = Cluster()
    cluster.says("node-b", 1, EndedUnit(unit=1, times=2, last_ms=5, error="no space: 12 bytes"))
    cluster.look()
    cluster.look()
    assert cluster.texts() == ["unit 1 of node-b ended 2 times; last: no space: 12 bytes"]
    ended = EndedUnit(unit=1, times=5, last_ms=9, error="no space: 8 bytes")
    cluster.says("node-b", 1, ended)
    cluster.look()
    assert cluster.texts() == ["unit 1 of node-b ended 5 times; last: no space: 8 bytes"]
    # A node that comes back and says the same tells nothing new.
    cluster.live("ac")
    cluster.look()
    cluster.live("abc")
    cluster.look()
    went_on = "node-b has left the group of nodes, and its units went on"
    assert cluster.texts()[:2] == ["node-b is back", went_on]
    assert len(cluster.texts()) == 3
    # Earlier ends leave the count of the last ten minutes.
    cluster.look(1_000.0)
    cluster.says("node-b", 1, msgspec.structs.replace(ended, times=1, last_ms=99, error="killed by signal 9"))
    cluster.look()
    assert cluster.texts()[0] == "unit 1 of node-b ended: killed by signal 9"


def test_who_takes_over_from_a_unit_that_ended_or_fell_silent_is_counted() -> None:
    cluster = Cluster()
    both = ONE, OTHER

    def answer(copy: CopyName, other: CopyState) -> None:
        for task in both:
            cluster.has(A, task, CopyState.ANSWERING if copy is A else other)
            cluster.has(B, task, CopyState.ANSWERING if copy is B else other)

    answer(B, CopyState.SILENT)
    cluster.look()
    # For a unit that was killed its node says that it closed.
    answer(A, CopyState.CLOSED)
    cluster.has(A, OTHER, CopyState.SILENT)
    cluster.says("node-b", 1, EndedUnit(unit=0, times=1, last_ms=5, error="killed by signal 9"))
    cluster.look()
    cluster.has(A, OTHER, CopyState.ANSWERING)
    cluster.look()
    ended = "unit 0 of node-b ended: killed by signal 9; node-a took over 2 tasks"
    assert cluster.texts() == [ended]
    # What it hands over in order later is not told of it.
    cluster.looks(60)
    answer(B, CopyState.SILENT)
    cluster.look()
    cluster.has(B, ONE, CopyState.SILENT)
    cluster.has(C, ONE, CopyState.ANSWERING)
    cluster.look()
    assert cluster.texts() == [ended]
    del cluster.states[C][ONE]
    answer(B, CopyState.SILENT)
    cluster.looks(60)
    cluster.silent.add(B)
    answer(A, CopyState.SILENT)
    cluster.looks(15)
    assert cluster.texts() == [ended]
    cluster.looks(2)
    silent, _ = cluster.entries()
    assert silent["kind"] == "unit_silent"
    assert silent["text"] == "unit 0 of node-b fell silent; node-a took over 2 tasks"
    # When it is killed for that, nobody takes over once more.
    cluster.looks(40)
    cluster.says("node-b", 1, EndedUnit(unit=0, times=2, last_ms=9, error="it hung"))
    cluster.look()
    assert cluster.texts()[0] == "unit 0 of node-b ended: it hung"


def test_a_unit_that_fell_silent_reports_again() -> None:
    cluster = Cluster()
    cluster.looks(60)
    for times in ("", ", 2 times"):
        cluster.silent.add(B)
        cluster.looks(20)
        assert cluster.texts()[0] == f"unit 0 of node-b fell silent{times}"
        cluster.silent.remove(B)
        cluster.looks(2)
        assert cluster.entries()[0]["kind"] == "unit_heard"
        assert cluster.texts()[0] == f"unit 0 of node-b reports again{times}"
    assert len(cluster.texts()) == 2
    # One that was started anew meanwhile is another one: its end is told of instead.
    cluster.silent.add(B)
    cluster.looks(20)
    cluster.generation = 2
    cluster.silent.remove(B)
    cluster.looks(2)
    assert cluster.texts()[0] == "unit 0 of node-b fell silent, 3 times"


def test_a_node_that_is_away_when_it_begins_to_look_is_named() -> None:
    cluster = Cluster()
    cluster.live("b")
    cluster.lately = Lately(SINCE_MS, cluster.now_s)
    cluster.look()
    assert cluster.texts() == ["node-a was away already when this front-end began to look"]
    cluster.live("ab")
    cluster.look()
    assert cluster.texts()[0] == "node-a is back"
    # Where nobody is a member it is not known who is.
    cluster.live("")
    cluster.lately = Lately(SINCE_MS, cluster.now_s)
    cluster.look()
    assert cluster.texts() == []


def test_the_command_prints_the_newest() -> None:
    cluster = Cluster()
    shown = overview(cluster.observed, cluster.plan, "node-a", [ONE, OTHER], cluster.now_s)
    assert "lately" not in as_text(shown)
    assert "lately" not in as_text({**shown, "lately": cluster.lately.shown(cluster.now_s)})
    for number in range(7):
        cluster.live("abcdefghijk"[: 4 + number])
        cluster.look()
    lines = as_text({**shown, "lately": cluster.lately.shown(cluster.now_s)}).splitlines()
    begin = lines.index(
        "lately, as the server has noted since 1970-01-01T00:16:40Z; the last 5 of 7, all with --json:"
    )
    assert lines[begin + 1] == "  1970-01-01T00:16:48Z node-j is new"
    assert len(lines) == begin + 6
    newest = cluster.lately.shown(cluster.now_s, 3)["entries"]
    assert newest == cluster.entries()[:3]


def test_the_last_are_kept_and_what_happens_again_drives_out_none() -> None:
    cluster = Cluster()
    for _ in range(20):
        cluster.live("ab")
        cluster.look()
        cluster.live("abc")
        cluster.look()
    assert cluster.texts() == ["node-c is back, 20 times", "node-c is gone, 20 times"]
    for number in range(KEPT_MAX + 5):
        cluster.live("abc" + chr(ord("d") + number % 2))
        cluster.look(601.0)
    assert len(cluster.entries()) == KEPT_MAX
    assert "node-c is gone, 20 times" not in cluster.texts()


def test_many_copies_that_fail_at_once_are_one_entry_of_their_node_each() -> None:
    """Whatever their errors: they drive out nothing else."""
    cluster = Cluster()
    tasks = [TaskKey("s", 1, "card", number) for number in range(300)]
    cluster.planned(2, dict.fromkeys(tasks, (A, B)))
    cluster.look()
    cluster.live("ab")
    cluster.look()
    for number, task in enumerate(tasks):
        for copy in (A, B):
            cluster.has(copy, task, CopyState.FAILED, f"/data/{'x' * (number % 60)}: damaged")
    cluster.look()
    first, second, gone = cluster.texts()
    assert first.startswith(
        "300 copies on node-b failed: s/card/0, s/card/1, s/card/2 and 297 more; last: /data/x"
    )
    assert second.startswith("300 copies on node-a failed: ")
    assert gone == "node-c is gone"


def test_a_node_that_was_away_at_the_first_look_is_back_not_new() -> None:
    cluster = Cluster()
    cluster.says("node-c", 1)
    cluster.live("ab")
    cluster.lately = Lately(SINCE_MS, cluster.now_s)
    cluster.look()
    cluster.live("abc")
    cluster.look()
    assert cluster.texts() == ["node-c is back"]
