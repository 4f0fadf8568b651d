"""A task opened from a snapshot gives the replies of the task that it was made of, and has its state and its events."""

from pathlib import Path

import pytest

from tests.counts import seeds
from tests.host.snapshot_run import SnapshotRun
from tests.strategies.case import replies
from tests.strategies.generate import Profile
from tests.strategies.seeded import case
from tests.task.player import assert_reply

CHANGING = Profile(spread=False, explicit_warm=True, control_percent=8)


@pytest.mark.parametrize("seed", seeds(range(1, 5), range(100)))
def test_metrics_that_come_and_go(seed: int, tmp_path: Path) -> None:
    drawn = case(seed + 4_000, 300, CHANGING)
    expected, run = replies(drawn), SnapshotRun(drawn, tmp_path, seed)
    for at, answer in run.run().items():
        assert_reply(expected[at], answer, run.writer.partitioner, f"step {at}")
    assert run.seen.snapshots


def test_a_run_comes_across_all_kinds_of_snapshots(tmp_path: Path) -> None:
    run = SnapshotRun(case(4_006, 300, CHANGING), tmp_path, 3)
    run.run()
    seen = run.seen
    assert seen.snapshots > seen.half_filled > 0
    assert min(seen.with_links, seen.with_copies, seen.with_open_rows, seen.deleted) > 0
