"""A task's clock, floor, bound, duplicates, redeliveries and fills, on logs small enough to see through."""

from typing import Any

import pytest

from tests.oracle.definitions import Stream
from tests.oracle.query import parse_query
from tests.oracle.records import (
    AddField,
    AddMetric,
    DropMetric,
    EventRecord,
    Position,
    SetLateness,
    SetRetention,
    Warm,
)
from tests.oracle.task import Task, TaskReply
from tests.oracle.types import parse_type
from tests.oracle.windows import MINUS_INFINITY

FIELDS = {name: parse_type(text) for name, text in {"id": "string", "k": "string", "x": "long"}.items()}


class Log:
    """A task and the shortest way to write to its log."""

    def __init__(self, **settings: Any) -> None:
        self.task = Task(Stream("s", FIELDS, id="id", **settings))
        self.serial = 0

    def add(self, over: str, item: str = "sum(x)", *, name: str = "m") -> int:
        (metric,) = parse_query(f"SELECT {item} AS {name} FROM s GROUP BY k OVER {over}")
        self.serial += 1
        self.task.apply(AddMetric(metric, self.serial))
        return self.serial

    def event(self, identity: str, time: int, x: int | None = 1, **others: Any) -> TaskReply:
        position = others.pop("position", None)
        fields = {"id": identity, "k": "a", **others} | ({} if x is None else {"x": x})
        reply = self.task.apply(EventRecord(identity, time, fields, position))
        assert reply is not None
        return reply

    def value(self, identity: str, time: int, x: int | None = 1, **others: Any) -> object:
        return self.event(identity, time, x, **others).values["m"]


def test_a_sliding_window_is_open_at_its_old_end_and_closed_at_its_new_one() -> None:
    log = Log()
    log.add("SLIDING 10 MILLISECONDS")
    assert [log.value("a", 0, 1), log.value("b", 9, 2), log.value("c", 10, 4), log.value("d", 19, 8)] == [
        1,
        3,
        6,
        12,
    ]


def test_a_delayed_window_ends_at_its_delay() -> None:
    log = Log()
    log.add("SLIDING 10 MILLISECONDS DELAYED BY 5 MILLISECONDS", "count(x)")
    assert [log.value(str(t), t) for t in (0, 4, 5, 14, 15, 19)] == [0, 0, 1, 3, 2, 2]


def test_a_tumbling_window_begins_at_multiples_of_its_size_also_before_1970() -> None:
    log = Log()
    log.add("TUMBLING 10 MILLISECONDS", "count(*)")
    assert [log.value(str(t), t) for t in (-11, -10, -1, 0, 9, 10)] == [1, 1, 2, 1, 2, 1]


def test_a_delayed_tumbling_window() -> None:
    log = Log()
    log.add("TUMBLING 10 MILLISECONDS DELAYED BY 3 MILLISECONDS", "count(*)")
    assert [log.value(str(t), t) for t in (10, 12, 13, 15, 22, 23)] == [0, 0, 1, 2, 4, 0]


def test_equal_times_are_told_apart_by_offset() -> None:
    log = Log()
    log.add("SLIDING 10 MILLISECONDS")
    assert [log.value(i, 5, x) for i, x in (("a", 1), ("b", 2), ("c", 4))] == [1, 3, 7]


def test_an_event_out_of_order_counts_where_its_time_says() -> None:
    log = Log(lateness_ms=100)
    log.add("SLIDING 10 MILLISECONDS")
    log.add("INFINITE", "last(x)", name="l")
    log.event("a", 50, 1)
    inside = log.event("b", 45, 2)
    assert (inside.values, inside.late) == ({"m": 3, "l": 1}, None)
    assert log.event("c", 40, 4).values == {"m": 3, "l": 1}
    assert log.event("d", 50, 8).values == {"m": 11, "l": 8}


def test_late_is_before_the_floor_and_the_floor_itself_is_in_time() -> None:
    log = Log(lateness_ms=10)
    log.add("INFINITE", "first(x)")
    log.event("a", 100, 1)
    assert log.task.floor == 90
    assert log.event("b", 90, 2).late is None
    rewritten = log.event("c", 89, 3)
    assert (rewritten.late, rewritten.values["m"]) == ("rewritten", 2)
    assert [accepted.time for accepted in log.task.accepted] == [100, 90, 90]


def test_discarded_changes_nothing_and_is_not_remembered() -> None:
    log = Log(lateness_ms=10, late_policy="discard")
    log.add("INFINITE", "count(*)")
    log.event("a", 100)
    for _ in range(2):
        reply = log.event("b", 89)
        assert (reply.late, reply.duplicate, reply.values["m"]) == ("discarded", False, 1)
    assert log.value("b", 90) == 2


def test_the_floor_never_goes_back() -> None:
    log = Log(lateness_ms=10)
    log.add("INFINITE", "count(*)")
    log.event("a", 100)
    log.task.apply(SetLateness(50))
    assert log.task.floor == 90
    assert log.event("b", 89).late == "rewritten"
    log.event("c", 145)
    assert log.task.floor == 95
    log.task.apply(SetLateness(5))
    assert log.task.floor == 140


def test_the_bound_follows_retention_in_the_same_way() -> None:
    log = Log(lateness_ms=10, retention_ms=20)
    assert log.task.bound == MINUS_INFINITY
    log.event("a", 100)
    assert log.task.bound == 80
    log.task.apply(SetRetention(15))
    assert log.task.bound == 85
    log.task.apply(SetRetention(None))
    log.event("b", 1000)
    assert log.task.bound == 85


def test_a_duplicate_changes_nothing_and_moves_no_clock() -> None:
    log = Log(lateness_ms=10)
    log.add("INFINITE", "count(*)")
    log.event("a", 100)
    again = log.event("a", 10**6)
    assert (again.duplicate, again.late, again.values["m"], log.task.clock) == (True, None, 1, 100)
    assert log.event("a", 0).late is None
    other_group = log.event("a", 100, k="z")
    assert (other_group.duplicate, other_group.values["m"]) == (True, 0)


@pytest.mark.parametrize(("between", "duplicate"), [(1, True), (2, True), (3, False), (4, False)])
def test_the_horizon_counts_acceptances(between: int, duplicate: bool) -> None:
    log = Log(dedup_events=3)
    log.event("a", 0)
    for number in range(between):
        log.event(str(number), 0)
        log.event(str(number), 0)
    assert log.event("a", 0).duplicate is duplicate


def test_a_duplicate_refreshes_nothing() -> None:
    log = Log(dedup_events=2)
    log.event("a", 0)
    log.event("b", 0)
    assert log.event("a", 0).duplicate
    log.event("c", 0)
    assert not log.event("a", 0).duplicate


def test_redelivery_repeats_the_original_reply_until_its_position_is_committed() -> None:
    log = Log(lateness_ms=10, dedup_events=1)
    log.add("INFINITE", "count(*)")
    original = log.event("a", 100, position=Position(0, 7, 7))
    log.event("b", 100, position=Position(0, 8, 7))
    assert log.event("a", 100, position=Position(0, 7, 7)) == original
    elsewhere = log.event("a", 100, position=Position(1, 7, 7))
    assert (elsewhere.duplicate, elsewhere.values["m"]) == (False, 3)
    settled = log.event("a", 100, position=Position(0, 7, 8))
    assert (settled.duplicate, settled.values["m"]) == (True, 3)
    assert log.event("b", 100, position=Position(0, 8, 8)).values["m"] == 2


def test_a_metric_added_later_holds_what_is_after_the_bound() -> None:
    log = Log(lateness_ms=10, retention_ms=20)
    for time in (79, 80, 81, 100):
        log.event(str(time), time)
    serial = log.add("SLIDING 1 SECOND", "count(*)")
    cold = log.event("c", 100)
    assert (cold.values, cold.warming, cold.partial) == ({"m": None}, ("m",), {})
    log.task.apply(Warm(serial))
    warm = log.event("d", 100)
    assert (warm.values, warm.warming, warm.partial) == ({"m": 4}, (), {"m": 80})
    # At T = 1079 the window (79, 1079] still reaches the bound, at 1080 it no longer does.
    assert log.event("e", 1079).partial == {"m": 80}
    assert log.event("f", 1080).partial == {}


def test_partial_needs_an_accepted_event_at_or_before_the_bound() -> None:
    log = Log(lateness_ms=10, retention_ms=20)
    log.event("a", 81)
    log.event("b", 100)
    log.task.apply(Warm(log.add("INFINITE", "count(*)")))
    assert log.event("c", 100).partial == {}
    assert log.value("d", 100) == 4


def test_a_tumbling_metric_is_partial_while_its_bucket_begins_by_the_bound() -> None:
    log = Log(lateness_ms=10, retention_ms=20)
    log.event("a", 40)
    log.event("b", 120)
    log.task.apply(Warm(log.add("TUMBLING 100 MILLISECONDS", "count(*)")))
    assert log.event("c", 199).partial == {"m": 100}
    assert log.event("d", 200).partial == {}


def test_where_retention_is_lateness_an_event_at_the_bound_is_left_out_whenever_it_came() -> None:
    log = Log(lateness_ms=10, retention_ms=10)
    log.event("a", 100)
    log.task.apply(Warm(log.add("INFINITE", "count(*)")))
    assert log.event("b", 91).partial == {}
    late = log.event("c", 5)
    assert (late.late, late.values["m"], late.partial) == ("rewritten", 2, {"m": 90})


def test_behind_a_gap_a_window_is_partial_until_it_lies_behind_it() -> None:
    log = Log(lateness_ms=10)
    log.task.apply(Warm(log.add("SLIDING 100 MILLISECONDS", "count(*)")))
    log.event("a", 1000)
    # What the gap had is not later than 1060.
    log.task.cross_gap(appended=1050, max_future=10)
    reply = log.event("b", 1099)
    assert (reply.values, reply.partial) == ({"m": 2}, {"m": 1060})
    # The event from before the gap leaves the window while that is still partial.
    reply = log.event("c", 1159)
    assert (reply.values, reply.partial) == ({"m": 2}, {"m": 1060})
    # (1060, 1160] lies wholly behind it.
    assert log.event("d", 1160).partial == {}
    assert log.event("a", 1160).duplicate


def test_the_greater_of_two_bounds_is_listed() -> None:
    log = Log(lateness_ms=10, retention_ms=20)
    log.event("a", 50)
    log.task.cross_gap(appended=0, max_future=5)
    log.event("b", 100)
    log.task.apply(Warm(log.add("INFINITE", "count(*)")))
    assert log.event("c", 100).partial == {"m": 80}
    log.task.cross_gap(appended=200, max_future=5)
    assert log.event("d", 100).partial == {"m": 205}
    log.task.cross_gap(appended=0, max_future=5)
    assert log.event("e", 100).partial == {"m": 205}


def test_warm_at_once_where_nothing_was_accepted_yet() -> None:
    log = Log()
    log.add("INFINITE", "count(*)")
    assert log.event("a", 0).warming == ()


def test_a_warm_record_speaks_of_its_own_add_alone() -> None:
    log = Log()
    log.event("a", 0)
    first = log.add("INFINITE", "count(*)")
    log.task.apply(DropMetric("m"))
    log.task.apply(Warm(first))
    assert log.event("b", 0).values == {}
    second = log.add("INFINITE", "count(*)")
    log.task.apply(Warm(first))
    assert log.event("c", 0).warming == ("m",)
    for _ in range(2):
        log.task.apply(Warm(second))
        assert not log.event("d", 0).warming


def test_a_field_added_later_is_null_before() -> None:
    log = Log()
    log.event("a", 0)
    log.task.apply(AddField("y", "long"))
    log.task.apply(Warm(log.add("INFINITE", "count(y)")))
    assert log.value("b", 0) == 0
    assert log.value("c", 0, y=5) == 1


def test_null_equals_null_in_groups_and_nulls_do_not_count() -> None:
    log = Log()
    log.add("INFINITE", "count(x)")
    log.event("a", 0, k=None)
    log.event("b", 0, None, k=None)
    assert log.value("c", 0, k=None) == 2
    assert log.value("d", 0) == 1


def test_times_at_the_ends_of_64_bits() -> None:
    log = Log(lateness_ms=10, retention_ms=20)
    log.add("SLIDING 1 WEEK", "count(*)")
    log.add("TUMBLING 1 WEEK", "count(*)", name="b")
    assert log.event("a", -(2**63) + 1).values == {"m": 1, "b": 1}
    assert log.event("b", -(2**63) + 5).values == {"m": 2, "b": 2}
    assert log.event("c", 2**63 - 1).values == {"m": 1, "b": 1}
    assert log.event("d", -(2**63) + 1).late == "rewritten"
