"""Slices of the sweep in shares: few rows at a time where deleting takes its time, all of them in the end."""

from pathlib import Path

import pytest

from railgun.task.replies import discard_replies
from railgun.task.settings import TaskSettings
from railgun.wire.records import Records
from tests.task.small_log import SmallLog, stream_text

ENTITIES = 300
SHARES = 32
INTERVAL_S = 10.0
SMALL = 40
MANY, LIVE = 70, 7_000


@pytest.mark.parametrize("slow", [False, True])
def test_rows_go_a_few_at_a_time(tmp_path: Path, slow: bool) -> None:
    clock_s = [0.0]

    def now() -> float:
        clock_s[0] += 0.001 * slow
        return clock_s[0]

    log = SmallLog(stream_text())
    for number in range(ENTITIES):
        log.event(f"e{number}", 1_000_000 + number, f"k{number}")
    log.event("last", 2_000_000, "last")
    task = log.open(tmp_path, TaskSettings(sweep_interval_s=INTERVAL_S), now=now)
    try:
        log.feed(task)
        sweep, steps, deleted = task.sweep, 0, task.sweep.deleted
        assert deleted == 0
        while sweep.deleted < ENTITIES:
            clock_s[0] = max(clock_s[0], sweep._next_s)
            is_soon, steps = sweep.step(SHARES), steps + 1
            assert steps < 100 * ENTITIES
            gone, deleted = sweep.deleted - deleted, sweep.deleted
            if slow:
                assert gone <= 128 // SHARES
            due_in_s = sweep._next_s - clock_s[0]
            if gone:
                assert is_soon
                assert 0 < due_in_s <= INTERVAL_S / 2, "the next is due soon"
            known = sweep.deleted
            assert sweep.step(SHARES) == is_soon, "it is not due"
            assert sweep.deleted == known
        assert not slow or steps >= ENTITIES * SHARES // 128
    finally:
        task.close()


def test_under_a_checkpoint_a_step_writes_no_more_than_elsewhere(tmp_path: Path) -> None:
    """What the checkpoint has copied is written a few at a time, before the first row goes; not all for one row."""
    log = SmallLog(stream_text())
    for number in range(ENTITIES):
        log.event(f"e{number}", 1_000_000 + number, f"k{number}")
    task = log.open(tmp_path, TaskSettings(sweep_interval_s=0.0))
    try:
        task.process(Records.of(log.records), 0, discard_replies)
        task.checkpointer.begin(b"")
        # All of them leave the window: each row changes under the checkpoint, and is empty.
        log.event("last", 2_000_000, "last")
        task.process(Records.of(log.records[-1:]), len(log.records) - 1, discard_replies)
        room, written = task.table._room, list[int]()
        while task.sweep.deleted < ENTITIES:
            copied, deleted = room.stats.copied, task.sweep.deleted
            task.sweep.step(SHARES)
            written.append(room.stats.copied - copied)
            assert not (task.sweep.deleted > deleted and written[-1] > SMALL)
            assert len(written) < 100 * ENTITIES
        assert sum(written) >= ENTITIES
        assert max(written) <= SMALL
        task.checkpointer.finish()
    finally:
        task.close()


def test_rows_go_under_a_checkpoint_though_events_make_more_copies_than_a_step_writes(tmp_path: Path) -> None:
    """Steps that find no way write more then: a checkpoint that is always under way would keep all rows."""
    log = SmallLog(stream_text())
    for number in range(ENTITIES):
        log.event(f"e{number}", 1_000_000, f"k{number}")
    for number in range(LIVE):
        log.event(f"f{number}", 1_002_000, f"l{number}")
    task = log.open(tmp_path, TaskSettings(sweep_interval_s=0.0))
    try:
        task.process(Records.of(log.records), 0, discard_replies)
        task.checkpointer.begin(b"")
        written, copied = list[int](), task.table.stats().copied
        for first in range(0, LIVE, MANY):
            for number in range(first, first + MANY):
                log.event(f"g{number}", 1_002_000, f"l{number}")
            task.process(Records.of(log.records[-MANY:]), len(log.records) - MANY, discard_replies)
            task.sweep.step(SHARES)
            written.append(task.table.stats().copied - copied)
            copied += written[-1]
        assert task.sweep.deleted > 0
        assert written[0] <= SMALL < max(written) <= 4 * SMALL
    finally:
        task.close()
