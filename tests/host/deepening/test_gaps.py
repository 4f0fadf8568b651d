"""A log loses records while its task is being deepened, and somebody accepts the gap: the deepening does not take
effect in the task, wherever its successor is, and a later one does.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from railgun.catalog.changes import Deepen
from railgun.cluster.copies import Gap, LogPoint
from railgun.history.plan_file import deepening_folder
from railgun.wire.records import CONTROL, kind_of
from tests.host.deepening.deepened_host import HISTORY, WHERE, DeepenedHost, deepened_host
from tests.host.deepening.test_take_over import events
from tests.unit.local_units import awaited

_LATER = "l" * 32
_GAP_MS = 10_000_000


def _lose(rig: DeepenedHost, lost: int | None, write: Callable[[DeepenedHost], None]) -> None:
    """End the host. Its log gets more records, with the definitions that are written for the gap, and loses the first
    ones. The host starts again, once the gap is accepted.

    lost: how many records are lost behind the task's checkpoint; None: all until the host ended, and some more.
    write: writes to the log what comes before the records that are left.
    """
    state = rig.host.durable[0]
    rig.close()
    rig.log.append(*WHERE, events(100, 20))
    offset = rig.log.end_offset(*WHERE) if lost is None else state + lost
    write(rig)
    rig.log.append(*WHERE, events(120, 5))
    begin = rig.log.end_offset(*WHERE)
    rig.log.append(*WHERE, [each for each in rig.small.records if kind_of(each) == CONTROL])
    rig.log.trim(*WHERE, offset)
    assert rig.log.start_offset(*WHERE) == offset
    told = begin, rig.log.end_offset(*WHERE)
    rig.place = replace(
        rig.place, gap=Gap(LogPoint(state), offset, _GAP_MS, told, rig.place_of_change, rig.host.topic_id)
    )
    rig.open()


def _follows(rig: DeepenedHost) -> int | None:
    """The successor lacks the records of the gap."""
    rig.host.checkpoint()
    return None


def _is_ahead(rig: DeepenedHost) -> int:
    """The successor has a checkpoint behind the gap, and the task has not."""
    rig.host.checkpoint()
    rig.add(events(10, 40))
    rig.work_until_following()
    successor = rig.host.take_over.successor
    assert successor is not None
    successor.task.checkpoints.take()
    return 5


def _nothing(rig: DeepenedHost) -> None:
    """No change was made."""


def _deepen(rig: DeepenedHost) -> None:
    rig.order(Deepen)


def _goes_on(rig: DeepenedHost, first: int) -> None:
    """The task is the one that has crossed the gap, and answers."""
    rig.take_all()
    assert rig.host.failure is None
    rig.add(events(first, 3))
    assert rig.host.is_running
    assert rig.host.task.history == ""
    assert rig.host.task.gap is not None


def _failure(rig: DeepenedHost) -> str:
    """Why the task cannot be deepened, as it reports."""
    rig.work()
    return str((rig.host.following or {}).get("failure"))


@pytest.mark.parametrize("stands", [_follows, _is_ahead])
@pytest.mark.parametrize("write", [_nothing, _deepen])
def test_a_deepening_that_began_before_a_gap_does_not_take_effect(
    tmp_path: Path, stands: Callable[[DeepenedHost], int | None], write: Callable[[DeepenedHost], None]
) -> None:
    with deepened_host(tmp_path) as rig:
        rig.begin()
        rig.offer()
        rig.work_until_following()
        rig.add(events(0, 10))
        rig.work_until_following()
        _lose(rig, stands(rig), write)
        _goes_on(rig, 200)
        awaited(lambda: f"a gap since history {HISTORY} was begun; deepen anew" in _failure(rig))
        # Whoever writes this has not heard of the gap.
        rig.change(Deepen)
        _goes_on(rig, 210)
        rig.host.checkpoint()
        rig.close()
        rig.open()
        _goes_on(rig, 220)


def test_a_later_deepening_takes_effect_and_the_gap_stays(tmp_path: Path) -> None:
    with deepened_host(tmp_path) as rig:
        rig.begin()
        _lose(rig, _follows(rig), _nothing)
        _goes_on(rig, 200)
        gap = rig.host.task.gap
        # The first one is given up.
        shutil.rmtree(deepening_folder(rig.data, "s"))
        rig.begin(_LATER)
        rig.offer(_LATER)
        rig.work_until_following()
        rig.change(Deepen, _LATER)
        assert rig.host.failure is None
        for _ in range(2):
            assert rig.host.task.history == _LATER
            assert rig.host.task.gap == gap
            rig.add(events(220, 3))
            rig.host.checkpoint()
            rig.close()
            rig.open()
            rig.take_all()
