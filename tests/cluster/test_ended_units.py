"""What a node reports in the name of a unit whose process has ended, and what readers make of late reports."""

import msgspec

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyState
from railgun.cluster.report_table import ReportTable
from railgun.cluster.reports import CopyStatus, UnitReport, encode_report

STATES = list(CopyState)


def report(generation: int) -> UnitReport:
    """A report of a unit that has a copy in each state."""
    copies = [
        CopyStatus(
            stream="s",
            created=0,
            partitioner="card",
            partition=number,
            state=state,
            position=7,
            replied=5,
            end=9,
        )
        for number, state in enumerate(STATES)
    ]
    return UnitReport(node="n", unit=1, generation=generation, number=3, interval_ms=200, copies=copies)


def test_copies_that_could_answer_are_closed_and_the_others_stay_as_they_were() -> None:
    before = report(100)
    ended = before.ended()
    assert ended is not None
    assert [each.state for each in ended.copies] == [
        CopyState.CLOSED if state.is_caught_up else state for state in STATES
    ]
    for was, each in zip(before.copies, ended.copies, strict=True):
        assert each.leaving == was.state.is_caught_up
        # It claims no more than the unit did.
        assert msgspec.structs.replace(each, state=was.state, leaving=was.leaving) == was
    assert (ended.generation, ended.number, ended.ended()) == (100, 3, None)


def test_reports_of_an_earlier_run_are_left_out_when_they_come_late() -> None:
    table, task = ReportTable(), TaskKey("s", 0, "card", 0)
    ended = report(100).ended()
    assert ended is not None

    def heard() -> list[CopyState]:
        return [each.status.state for each in table.copies(task)]

    for record, expected in ((report(100), STATES[0]), (report(200), STATES[0]), (ended, STATES[0])):
        table.take(encode_report(record))
        assert heard() == [expected]
    # Of the same run it counts; and a unit that was forgotten begins anew.
    last = msgspec.structs.replace(ended, generation=200)
    table.take(encode_report(last))
    assert heard() == [CopyState.CLOSED]
    table.forget(last.copy)
    table.take(encode_report(report(50)))
    assert heard() == [STATES[0]]
