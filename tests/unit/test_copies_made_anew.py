"""A copy that is made anew stops where the earlier one would have: it goes by all that its unit has heard."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from railgun.cluster.copies import CopyName, CopyState
from railgun.host.task_host import TaskHost
from tests.cluster.some_reports import report, status
from tests.unit.hearing_unit import KEY, HearingUnit

HERE, THERE = CopyName("node-1", 0), CopyName("node-2", 0)


class _Unit(HearingUnit):
    """A unit whose copy of the task has not caught up. asked: how often whether it drops replies."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.make()

    def make(self) -> None:
        """Close the copy, and make it anew."""
        self.copies.forget(KEY)
        self.copies.follow({KEY: [THERE, HERE]})

    def host(self) -> Any:
        return SimpleNamespace(
            place=SimpleNamespace(key=KEY),
            is_running=True,
            is_filling=False,
            sink=SimpleNamespace(drops_replies=self._drops_replies),
            position=0,
            lag=1_000,
            limit=None,
            task=SimpleNamespace(metrics=SimpleNamespace(warming=[])),
        )

    def _drops_replies(self) -> bool:
        self.asked += 1
        return False

    @property
    def limit(self) -> int:
        """The offset at which the copy stops."""
        host = self.host()
        self.copies.decide([cast(TaskHost, host)])
        assert host.limit is not None
        return int(host.limit.offset)


@pytest.fixture
def unit() -> _Unit:
    made = _Unit()
    # Most was replied to by the other copy.
    made.report(report(status(replied=70)), report(status(replied=100), node="node-2", generation=5))
    assert made.limit == 100
    return made


def _is_kept(unit: _Unit) -> bool:
    before = unit.limit
    unit.make()
    return unit.limit == before == 100


def test_it_has_the_limit_of_a_copy_that_answers(unit: _Unit) -> None:
    assert _is_kept(unit)


@pytest.mark.parametrize("state", [CopyState.CLOSED, CopyState.FAILED])
def test_it_has_the_limit_of_a_copy_that_is_closed_or_failed(unit: _Unit, state: CopyState) -> None:
    unit.report(report(status(state=state, replied=100), node="node-2", generation=5))
    assert _is_kept(unit)


def test_it_has_the_limit_of_a_copy_that_its_unit_does_not_name_any_more(unit: _Unit) -> None:
    unit.report(
        report(status(state=CopyState.CLOSED, replied=100), node="node-2", generation=5),
        report(node="node-2", generation=5),
    )
    assert _is_kept(unit)


def test_it_has_the_limit_of_an_earlier_run_of_a_unit(unit: _Unit) -> None:
    # The unit began anew without the task; later comes what its node reports of the run before.
    unit.report(report(node="node-2", generation=6))
    assert _is_kept(unit)
    ended = status(state=CopyState.CLOSED, leaving=True, replied=100)
    unit.report(report(ended, node="node-2", generation=5))
    assert _is_kept(unit)


def test_it_has_the_limit_of_a_unit_that_was_not_heard_for_long(unit: _Unit) -> None:
    unit.now_s += 3_600.0
    assert _is_kept(unit)


def test_whether_replies_are_dropped_is_asked_once_for_all_hosts(unit: _Unit) -> None:
    asked = unit.asked
    unit.copies.decide([unit.host() for _ in range(100)])
    assert unit.asked == asked + 1
