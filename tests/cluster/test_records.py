"""What nodes tell one another comes back as it was written; what cannot be read is refused with a reason."""

from dataclasses import replace

import msgspec
import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState, Cut, Gap, LogPoint
from railgun.cluster.plan import Drain, Plan, PlannedCopy
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import (
    READS,
    AcceptedCut,
    AcceptedGap,
    DrainOrder,
    FrontEndRecord,
    NodeRecord,
    PlanReader,
    RecordError,
    decode_statement,
    encode_plan,
    encode_statement,
)
from railgun.cluster.report_table import ReportTable
from railgun.cluster.reports import CopyStatus, ReportError, UnitReport, decode_report, encode_report
from tests.cluster.clusters import task_names
from tests.cluster.some_reports import TASK, report, status

NAME = TaskKey(*TASK.values())  # type: ignore[arg-type]
HERE, THERE = CopyName("node-1", 0), CopyName("node-2", 1)


def test_a_report_comes_back() -> None:
    written = report(status(position=5, replied=3, epoch=2, filled={"n": 0.5}), number=7)
    assert decode_report(encode_report(written)) == written


def test_a_report_says_which_version_it_is() -> None:
    assert msgspec.json.decode(encode_report(report()))["version"] == 2


@pytest.mark.parametrize("record", [b"", b"{}", b'{"version": 2}', b'{"version": 3}', b"\xff"])
def test_what_is_no_report_is_refused(record: bytes) -> None:
    with pytest.raises(ReportError):
        decode_report(record)


def test_of_several_copies_the_one_that_answers_stands_for_the_task() -> None:
    table = ReportTable()
    table.take(encode_report(report(status(state=CopyState.SILENT), node="node-2", unit=1)), 2.0)
    table.take(encode_report(report(status())), 1.0)
    assert table.newest(NAME).copy == HERE  # type: ignore[union-attr]
    assert table.newest(NAME, since_s=1.5).copy == THERE  # type: ignore[union-attr]
    # The unit let go of it.
    table.take(encode_report(report()), 3.0)
    assert [heard.copy for heard in table.copies(NAME)] == [THERE]
    assert table.newest(TaskKey("other", 1, "k", 0)) is None


def test_what_a_front_end_says_comes_back() -> None:
    said = FrontEndRecord(said_ms=7, number=5, name="f", release="0.1.0", reads=READS)
    assert decode_statement(encode_statement(said)) == said
    assert msgspec.json.decode(encode_statement(said)) == {
        "kind": "frontend", "version": 1, "said_ms": 7, "number": 5, "name": "f", "release": "0.1.0",
        "reads": {"nodes": 1, "plan": 1, "reports": 2, "catalog": 5},
    }  # fmt: skip
    assert said.key == b"frontend/5"


def test_a_node_and_an_order_come_back() -> None:
    record = NodeRecord(name="node-1", folder="f", incarnation=3, host="h", units=2, release="0.1.0")
    assert decode_statement(encode_statement(record)) == record
    order = DrainOrder(node="node-1", asked_ms=4, is_on=True)
    assert decode_statement(encode_statement(order)) == order
    assert order.key != record.key
    with pytest.raises(RecordError):
        decode_statement(b"{}")


def test_a_plan_comes_back_and_what_is_older_is_left_out() -> None:
    one, other = task_names(2)
    first = Plan(1, {one: (PlannedCopy(HERE, "f"),), other: ()}, {one: (HERE,), other: ()}, "cause")
    first = replace(
        first,
        policy=ClusterPolicy(2, 1.5, 60.0, 3),
        drains={"node-2": Drain(4, True), "node-1": Drain(5, False, "no")},
    )
    second = replace(first, epoch=2, copies={**first.copies, one: (PlannedCopy(THERE, "g", is_going=True),)})
    reader = PlanReader()

    def take(plan: Plan, before: Plan, incarnation: int) -> list[bool]:
        return [reader.take(record) for _, record in encode_plan(plan, before, incarnation)]

    assert take(first, Plan(), 5) == [False, True]
    assert reader.plan == first
    assert take(second, first, 6) == [False, True]
    assert reader.plan == second
    assert take(replace(first, epoch=2), Plan(), 5)[-1] is False
    assert reader.plan == second
    # A stream that was dropped.
    third = Plan(3, {}, {}, "another")
    assert take(third, second, 6) == [False, True]
    assert reader.plan == third
    with pytest.raises(RecordError):
        reader.take(b"{}")


def test_a_plan_is_as_of_its_header_even_if_it_is_asked_for_later() -> None:
    """Records of tasks come before the header of their plan: they must not show in the plan before."""
    one, other = task_names(2)
    first = Plan(1, {one: (PlannedCopy(HERE, "f"),), other: ()}, {one: (HERE,), other: ()})
    first = replace(first, policy=ClusterPolicy(takeover_s=1.5))
    second = replace(first, epoch=2, copies={**first.copies, one: (PlannedCopy(THERE, "g"),)})
    reader = PlanReader()
    assert (reader.plan, reader.policy) == (Plan(), None)
    for _, record in encode_plan(first, Plan(), 5):
        reader.take(record)
    *tasks, header = (record for _, record in encode_plan(second, first, 5))
    for record in tasks:
        reader.take(record)
    assert (reader.plan, reader.policy) == (first, first.policy)
    assert reader.plan is reader.plan
    reader.take(header)
    assert reader.plan == second


def test_an_accepted_cut_comes_back_and_is_in_the_plan() -> None:
    accepted = AcceptedCut(**TASK, offset=80, leader_epoch=7)
    assert decode_statement(encode_statement(accepted)) == accepted
    plan = Plan(1, {NAME: (PlannedCopy(HERE, "f"),)}, {NAME: ()}, cuts={NAME: Cut(80, 7)})
    reader = PlanReader()
    for _, record in encode_plan(plan, Plan(), 1):
        reader.take(record)
    assert reader.plan.cuts == plan.cuts


def test_an_accepted_gap_comes_back_and_is_in_the_plan() -> None:
    gap = Gap(LogPoint(70, 3), 80, 1_000, (90, 94), 12, "topic")
    accepted = AcceptedGap(**TASK, gap=gap)
    assert decode_statement(encode_statement(accepted)) == accepted
    plan = Plan(1, {NAME: (PlannedCopy(HERE, "f"),)}, {NAME: ()}, gaps={NAME: gap})
    reader = PlanReader()
    for _, record in encode_plan(plan, Plan(), 1):
        reader.take(record)
    assert reader.plan == plan
    without = replace(plan, gaps={})
    assert b'"gap"' not in encode_plan(without, Plan(), 1)[0][1]
    assert len(encode_plan(plan, without, 1)) == 2, "it is a change of the plan"


def test_an_accepted_topic_stands_beside_the_cut_for_releases_that_do_not_know_it() -> None:
    accepted = AcceptedCut(**TASK, offset=7, leader_epoch=-1, topic_id="second", begin=7)
    assert decode_statement(encode_statement(accepted)) == accepted
    assert accepted.cut == Cut(7, -1, "second", 7)
    plan = Plan(1, {NAME: (PlannedCopy(HERE, "f"),)}, {NAME: ()}, cuts={NAME: accepted.cut})
    records = [record for _, record in encode_plan(plan, Plan(), 1)]
    reader = PlanReader()
    for record in records:
        reader.take(record)
    assert reader.plan.cuts == plan.cuts
    (partition,) = msgspec.json.decode(records[0])["partitions"].values()
    assert partition["cut"] == [7, -1]
    assert partition["log"] == {"topic_id": "second", "begin": 7}
    without = replace(plan, cuts={NAME: Cut(7, -1)})
    assert b'"log"' not in encode_plan(without, Plan(), 1)[0][1]
    assert len(encode_plan(plan, without, 1)) == 2, "it is a change of the plan"


def _with_copies(written: UnitReport, copies: list[CopyStatus]) -> UnitReport:
    return msgspec.structs.replace(written, copies=copies)


def test_an_unknown_word_of_a_copy_loses_that_copy_alone() -> None:
    other = {**TASK, "partition": 1}
    written = report(status(), status(**other, position=7), number=3)
    fields = msgspec.json.decode(encode_report(written))
    fields["copies"][0] |= {"state": "fetching"}
    assert decode_report(msgspec.json.encode(fields)) == _with_copies(written, written.copies[1:])
    fields["copies"][1] |= {"position": "seven"}
    assert decode_report(msgspec.json.encode(fields)) == _with_copies(written, [])
    # What is said of the whole unit has to be readable.
    with pytest.raises(ReportError):
        decode_report(msgspec.json.encode({**fields, "generation": "first"}))


def test_an_unknown_word_in_the_plan_leaves_that_task_as_it_was_planned() -> None:
    one, other = task_names(2)
    first = Plan(
        1, {task: (PlannedCopy(HERE, "f"),) for task in (one, other)}, {one: (HERE,), other: (HERE,)}
    )
    moved = {task: (PlannedCopy(THERE, "g"),) for task in (one, other)}
    second = Plan(2, moved, {one: (THERE,), other: (THERE,)})
    (_, tasks), (_, header) = encode_plan(second, first, 5)
    fields = msgspec.json.decode(tasks)
    fields["partitions"]["0"]["copies"][0] += ["donor"]
    unknown = msgspec.json.encode(fields)

    def read(*records: bytes) -> Plan:
        reader = PlanReader()
        for record in records:
            reader.take(record)
        return reader.plan

    before = [record for _, record in encode_plan(first, Plan(), 5)]
    assert read(*before, unknown, header).copies == {one: first.copies[one], other: second.copies[other]}
    assert read(unknown, header).copies == {other: second.copies[other]}
    fields["partitions"] = "all"
    with pytest.raises(RecordError):
        read(msgspec.json.encode(fields))
