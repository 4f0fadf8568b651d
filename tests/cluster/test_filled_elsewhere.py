"""A metric begins to answer once the copies that could take over have filled it, or when that takes too long."""

from collections.abc import Mapping

import pytest

from railgun.cluster.answering import Answering
from railgun.cluster.copies import CopyName, CopyReport, CopyState, LogPoint
from railgun.cluster.hearing import Hearing, Timing

ME, OTHER, STRANGER = (CopyName(node, 0) for node in ("me", "other", "stranger"))
TIMING = Timing(takeover_s=1.0, warm_wait_s=60.0)


def said(
    filled: Mapping[str, float],
    state: CopyState = CopyState.SILENT,
    position: int = 10,
    copy: CopyName = OTHER,
) -> CopyReport:
    return CopyReport(copy, 1, state, False, position, LogPoint(position), position, 0.2, filled)


@pytest.fixture
def answering() -> Answering:
    return Answering(ME, [ME, OTHER], TIMING, Hearing(TIMING, 0.0))


def test_without_others_nothing_is_waited_for(answering: Answering) -> None:
    assert answering.filled_elsewhere(["m", "n"], 1.0) == ["m", "n"]


def test_it_waits_until_the_other_has_filled_the_metric(answering: Answering) -> None:
    for step in range(10):
        answering.hear(said({"m": step / 10, "n": 1.0}), step)
        assert answering.filled_elsewhere(["m", "n"], step + 0.1) == ["n"]
    answering.hear(said({"m": 1.0, "n": 1.0}), 10.0)
    assert answering.filled_elsewhere(["m", "n"], 10.1) == ["m", "n"]


def test_one_that_does_not_know_the_metric_yet_is_waited_for(answering: Answering) -> None:
    answering.hear(said({}), 0.0)
    assert answering.filled_elsewhere(["m"], 0.5) == []


@pytest.mark.parametrize("state", [CopyState.BEHIND, CopyState.FAILED, CopyState.CLOSED])
def test_one_that_could_not_take_over_is_not_waited_for(answering: Answering, state: CopyState) -> None:
    answering.hear(said({"m": 0.5}, state), 0.0)
    assert answering.filled_elsewhere(["m"], 0.1) == ["m"]


def test_one_that_is_not_heard_any_more_is_not_waited_for(answering: Answering) -> None:
    answering.hear(said({"m": 0.5}), 0.0)
    assert answering.filled_elsewhere(["m"], 0.9) == []
    assert answering.filled_elsewhere(["m"], 1.2) == ["m"]


def test_one_whose_fill_stands_still_is_not_waited_for_long(answering: Answering) -> None:
    for tenth in range(60):
        answering.hear(said({"m": 0.5}), tenth / 10)
    assert answering.filled_elsewhere(["m"], 4.9) == []
    assert answering.filled_elsewhere(["m"], 5.91) == ["m"]


def test_the_wait_has_an_end(answering: Answering) -> None:
    for second in range(61):
        answering.hear(said({"m": second / 100}), second)
        assert answering.filled_elsewhere(["m"], second) == []
    answering.hear(said({"m": 0.7}), 61.0)
    assert answering.filled_elsewhere(["m"], 61.0) == ["m"]
