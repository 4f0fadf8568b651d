"""A unit takes the orders of its node's transfer process, and answers them."""

from pathlib import Path
from typing import cast

from railgun.node.relay import MakeSnapshot, Received, StopFetch
from railgun.unit.fetching import UnitFetcher
from railgun.unit.process import _take
from railgun.unit.snapshots import UnitSnapshots


class _Fetcher:
    def hear(self, message: object) -> None:
        raise AssertionError(message)


def test_an_order_is_answered(tmp_path: Path) -> None:
    made: list[tuple[str, str]] = []
    snapshots = UnitSnapshots(tmp_path, lambda name, error: made.append((name, error)))
    for message in (StopFetch("payments.0/card/3"), MakeSnapshot("payments.0/card/3", "ab")):
        _take(snapshots, cast(UnitFetcher, _Fetcher()), Received("transfer", message))
    assert made == []
    snapshots.step({})
    assert made == [("ab", "payments.0/card/3 has no copy here")]
