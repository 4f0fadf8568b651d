"""What a node reports in the name of a unit whose process has ended, and what readers make of late reports."""

import msgspec

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyState
from railgun.cluster.report_table import ReportTable
from railgun.cluster.reports import UnitReport, encode_report
from tests.cluster.some_reports import TASK, report, status

STATES = list(CopyState)


def reported(generation: int) -> UnitReport:
    """A report of a unit that has a copy in each state."""
    copies = [status(partition=number, state=state, replied=5) for number, state in enumerate(STATES)]
    return report(*copies, unit=1, generation=generation, number=3)


def test_copies_that_could_answer_are_closed_and_the_others_stay_as_they_were() -> None:
    before = reported(100)
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
    table, task = ReportTable(), TaskKey(**TASK)
    ended = reported(100).ended()
    assert ended is not None

    def heard() -> list[CopyState]:
        return [each.status.state for each in table.copies(task)]

    for record, expected in ((reported(100), STATES[0]), (reported(200), STATES[0]), (ended, STATES[0])):
        table.take(encode_report(record))
        assert heard() == [expected]
    # Of the same run it counts; and a unit that was forgotten begins anew.
    last = msgspec.structs.replace(ended, generation=200)
    table.take(encode_report(last))
    assert heard() == [CopyState.CLOSED]
    table.forget(last.copy)
    table.take(encode_report(reported(50)))
    assert heard() == [STATES[0]]
