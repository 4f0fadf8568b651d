"""How far the clock of a node's machine is from the brokers': it is kept, and warned of once while it is wrong."""

import logging

import pytest

from railgun.cluster.records import NodeRecord
from railgun.node.leader.clock_check import MOST_MS, ClockCheck

NOW_MS = 1_700_000_000_000


def said_at(said_ms: int) -> NodeRecord:
    return NodeRecord(name="n", folder="f", incarnation=1, host="here", units=1, release="0", said_ms=said_ms)


def test_it_is_kept_and_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    check = ClockCheck()
    assert check.ahead_ms is None
    with caplog.at_level(logging.WARNING):
        for ahead_ms, warnings in (
            (5, 0),
            (-MOST_MS, 0),
            (-MOST_MS - 1, 1),
            (-3_600_000, 1),
            (0, 1),
            (MOST_MS + 1, 2),
        ):
            check.take(said_at(NOW_MS + ahead_ms), NOW_MS)
            assert (check.ahead_ms, len(caplog.records)) == (ahead_ms, warnings)
    behind, ahead = (each.getMessage() for each in caplog.records)
    assert "behind the broker's" in behind
    assert "ahead of the broker's" in ahead
