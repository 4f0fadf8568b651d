"""How far a log is from losing what a copy needs: by hand, and against a log that is deleted as a broker does it."""

import random
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.log_room import LogBounds, LogRoom, log_room, log_rooms, log_warning, short_logs
from railgun.cluster.plan import Plan, PlannedCopy
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.report_table import ReportedCopy, ReportTable
from railgun.cluster.reports import CopyStatus, encode_report
from tests.cluster.some_reports import report, status

DAY_MS = 86_400_000
WEEK_MS, NOW_MS = 7 * DAY_MS, 1_700_000_000_000
TASK = TaskKey("s", 1, "k", 0)
A, B = CopyName("node-1", 0), CopyName("node-2", 0)
LOG = LogBounds(10, 1_000, WEEK_MS)


def _copy(name: CopyName = A, said_ms: int = 0, **said: Any) -> ReportedCopy:
    return ReportedCopy(name, status(**said), 0.0, 0.05, said_ms)


def test_the_oldest_checkpoint_decides() -> None:
    copies = [
        _copy(A, checkpoint=900, checkpoint_ms=NOW_MS - 1_000),
        _copy(B, checkpoint=300, checkpoint_ms=NOW_MS - 2 * DAY_MS),
    ]
    assert log_room(LOG, copies, NOW_MS) == LogRoom(10, 300, B, WEEK_MS, 5 * DAY_MS, 1_000)


def test_a_copy_without_a_checkpoint_has_nothing_to_lose() -> None:
    assert log_room(LOG, [_copy(checkpoint=0)], NOW_MS) == LogRoom(10, None, None, WEEK_MS, None, 1_000)
    assert log_room(LOG, [], NOW_MS).needed is None


def test_the_checkpoint_of_a_copy_that_is_opened_again_is_not_forgotten() -> None:
    """Its unit names no copies at first, and then one without a checkpoint."""
    table = ReportTable()

    def room(*copies: CopyStatus, generation: int = 2) -> tuple[int | None, int | None]:
        table.take(encode_report(report(*copies, generation=generation)), 0.0)
        found = log_rooms({TASK: LOG}, table, Plan(), NOW_MS)[TASK]
        return found.needed, found.left_ms

    told = {"end": 900, "checkpoint_ms": NOW_MS - 2 * DAY_MS}
    needed = 500, 5 * DAY_MS
    assert room(status(checkpoint=500, folder_id="a", **told), generation=1) == needed
    assert room() == (None, None)
    assert room(status(state=CopyState.BEHIND)) == needed
    assert room(status(state=CopyState.BEHIND, folder_id="a")) == needed
    assert room(status(checkpoint=600, folder_id="a", **told)) == (600, 5 * DAY_MS)
    # In another folder it begins anew.
    assert room(status(state=CopyState.BEHIND, folder_id="b")) == (None, None)
    assert room(status(state=CopyState.BEHIND)) == (None, None)


def test_a_log_that_is_kept_for_ever_has_no_end() -> None:
    room = log_room(replace(LOG, retention_ms=None), [_copy(checkpoint=300, checkpoint_ms=1)], NOW_MS)
    assert (room.left_ms, room.is_short) == (None, False)
    # Somebody may have deleted records all the same.
    gone = log_room(LogBounds(301, 1_000, None), [_copy(checkpoint=300, checkpoint_ms=1)], NOW_MS)
    assert (gone.left_ms, gone.is_short) == (0, True)


def test_what_the_log_does_not_have_any_more_may_be_lost() -> None:
    room = log_room(replace(LOG, start=301), [_copy(checkpoint=300, checkpoint_ms=NOW_MS)], NOW_MS)
    assert (room.left_ms, room.is_short) == (0, True)


def test_a_record_that_is_still_to_come_is_kept_for_the_whole_retention() -> None:
    assert log_room(LOG, [_copy(checkpoint=1_000)], NOW_MS).left_ms == WEEK_MS


def test_no_more_than_the_retention_is_left_whatever_the_clocks_say() -> None:
    room = log_room(LOG, [_copy(checkpoint=300, checkpoint_ms=NOW_MS + DAY_MS)], NOW_MS)
    assert room.left_ms == WEEK_MS


@pytest.mark.parametrize(
    ("said", "left_ms"),
    [
        ({"state": CopyState.SILENT}, 5 * DAY_MS),
        ({"state": CopyState.CLOSED, "leaving": True}, 5 * DAY_MS),
        # It stopped reading: the end that it knows is old.
        ({"state": CopyState.FAILED}, None),
        ({"state": CopyState.CLOSED}, None),
        ({"state": CopyState.SILENT, "end": 301}, None),
        # It is of an earlier release, and says no time.
        ({"state": CopyState.SILENT, "said_ms": 0}, None),
    ],
)
def test_where_a_copy_had_seen_the_log_end_what_came_later_is_younger_than_its_report(
    said: dict[str, Any], left_ms: int | None
) -> None:
    said = {"said_ms": NOW_MS - 2 * DAY_MS, "end": 300, **said}
    assert log_room(LOG, [_copy(checkpoint=300, **said)], NOW_MS).left_ms == left_ms


def test_copies_that_the_plan_does_not_name_any_more_do_not_count() -> None:
    table = ReportTable()
    for name, checkpoint in ((A, 900), (B, 300)):
        said = status(checkpoint=checkpoint, checkpoint_ms=NOW_MS)
        table.take(encode_report(report(said, node=name.node)))
    bounds = {TASK: LOG}
    assert log_rooms(bounds, table, Plan(), NOW_MS)[TASK].copy == B
    plan = Plan(1, {TASK: (PlannedCopy(A, "f"),)}, {TASK: (A,)}, policy=ClusterPolicy(copies=1))
    assert log_rooms(bounds, table, plan, NOW_MS)[TASK].copy == A
    # Where the plan has too few, those that were given up are wanted back.
    short = replace(plan, policy=ClusterPolicy(copies=2))
    assert log_rooms(bounds, table, short, NOW_MS)[TASK].copy == B


def test_a_node_that_is_away_counts_by_its_last_report() -> None:
    table = ReportTable()
    last = report(status(checkpoint=300, end=300, replied=300, position=300), said_ms=NOW_MS - 5 * DAY_MS)
    ended = last.ended()
    assert ended is not None
    table.take(encode_report(ended))
    (room,) = log_rooms({TASK: LOG}, table, Plan(), NOW_MS).values()
    assert (room.left_ms, room.is_short) == (2 * DAY_MS, True)


def test_the_warning_names_who_has_to_come_back_the_most_urgent_first() -> None:
    def room(left_ms: int | None) -> LogRoom:
        return LogRoom(0, 5, B, WEEK_MS, left_ms)

    lefts = [WEEK_MS, 3 * DAY_MS, WEEK_MS // 2, None, 0]
    rooms = {TASK._replace(partition=number): room(left_ms) for number, left_ms in enumerate(lefts)}
    assert [task.partition for task in short_logs(rooms)] == [4, 1]
    said = log_warning(rooms)
    assert said is not None
    assert said.startswith("2 logs will lose records")
    assert "s/k/4 (node-2/0, may be lost already), s/k/1 (node-2/0, 3 d left); " in said
    assert log_warning({TASK: room(WEEK_MS)}) is None


def test_the_warning_says_of_what_is_gone_that_it_is_lost() -> None:
    gone, soon = LogRoom(6, 5, A, WEEK_MS, 0), LogRoom(0, 5, B, WEEK_MS, DAY_MS)
    lost = (
        "1 log has lost records that a copy's last checkpoint needs: s/k/0 (node-1/0); unless such a copy takes "
        "another checkpoint first, it can go on only with data of a copy on another node"
    )
    assert log_warning({TASK: gone}) == lost
    both = str(log_warning({TASK: gone, TASK._replace(partition=1): soon}))
    assert both.startswith(f"{lost}; 1 log will lose records")
    assert "s/k/1 (node-2/0, 1 d left); have these nodes run" in both


def test_an_earlier_release_reads_reports_with_the_new_keys() -> None:
    """It skips what it does not know: here by a struct without them."""

    class Before(msgspec.Struct, kw_only=True, omit_defaults=True):
        node: str
        unit: int
        generation: int
        number: int = 0
        interval_ms: int
        copies: list[dict[str, Any]]

    written = encode_report(report(status(checkpoint=5, checkpoint_ms=7), said_ms=9))
    assert msgspec.json.decode(written, type=Before).copies[0]["checkpoint"] == 5
    assert list(msgspec.json.decode(written))[-1] == "said_ms"
    assert list(msgspec.json.decode(written)["copies"][0])[-1] == "checkpoint_ms"


def test_records_are_never_deleted_before_the_time_that_was_said() -> None:
    """A log whose records come at random times, deleted as soon as a broker may; a copy that follows and rests."""
    rng = random.Random(5)
    for _ in range(300):
        retention_ms = rng.choice([1_000, 50_000])
        now_ms, appended, checkpoint, copy = 1_000_000, list[int](), 0, None
        for _ in range(60):
            now_ms += rng.choice([0, 1, 700, 20_000])
            if rng.random() < 0.6:
                appended.append(now_ms)
            if rng.random() < 0.3:
                checkpoint = rng.randint(checkpoint, len(appended))
                has_read = rng.randint(checkpoint, len(appended))
                copy = _copy(
                    said_ms=now_ms,
                    checkpoint=checkpoint,
                    end=len(appended),
                    state=CopyState.SILENT,
                    checkpoint_ms=appended[checkpoint] if checkpoint < has_read else 0,
                )
            start = sum(each + retention_ms < now_ms for each in appended)
            bounds = LogBounds(start, len(appended), retention_ms)
            room = log_room(bounds, [] if copy is None else [copy], now_ms)
            if room.needed is None or room.left_ms is None:
                continue
            end_ms = appended[room.needed] if room.needed < len(appended) else now_ms
            assert now_ms + room.left_ms <= max(now_ms, end_ms + retention_ms), (now_ms, room, appended)
            if room.left_ms:
                assert start <= room.needed
