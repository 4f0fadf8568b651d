"""A limit that counts records which the log has lost is lowered once that is accepted."""

import pytest

from railgun.cluster.answering import Answering
from railgun.cluster.copies import CopyName, CopyReport, CopyState, Cut, LogPoint
from railgun.cluster.hearing import Hearing, Timing

HERE, THERE = CopyName("node-1", 0), CopyName("node-2", 0)


def _limit(cut: Cut | None, *replied: LogPoint) -> LogPoint:
    timing = Timing()
    copy = Answering(HERE, [THERE, HERE], timing, Hearing(timing, 0.0), cut)
    for point in replied:
        copy.hear(
            CopyReport(THERE, 1, CopyState.ANSWERING, False, point.offset, point, point.offset, 0.05), 0.0
        )
    return copy.limit


def test_what_was_replied_to_counts() -> None:
    assert _limit(None, LogPoint(100, 5), LogPoint(90, 5)) == LogPoint(100, 5)


def test_what_was_lost_counts_up_to_the_loss() -> None:
    assert _limit(Cut(80, 6), LogPoint(100, 5)) == LogPoint(80)
    assert _limit(Cut(80, 6), LogPoint(70, 5)) == LogPoint(70, 5)


def test_what_came_after_the_loss_counts() -> None:
    assert _limit(Cut(80, 6), LogPoint(100, 5), LogPoint(90, 6)) == LogPoint(90, 6)


def test_a_point_whose_epoch_is_not_known_is_lost_if_it_is_behind_the_loss() -> None:
    assert Cut(80, 0).has_lost(LogPoint(81))
    assert not Cut(80, 0).has_lost(LogPoint(80))


@pytest.mark.parametrize(
    ("topic_id", "position", "is_before"),
    [
        ("second", 9, False),
        ("second", 7, False),
        ("second", 6, True),
        ("first", 9, True),
        ("", 9, True),
        ("third", 9, True),
        ("first", 0, False),
        ("", 0, False),
    ],
)
def test_what_lies_before_the_topic_that_was_accepted(
    topic_id: str, position: int, *, is_before: bool
) -> None:
    assert Cut(7, -1, "second", 7).is_before(topic_id, position) == is_before
    assert not Cut(7, 3).is_before(topic_id, position)


def test_in_a_topic_that_was_accepted_nothing_is_lost_at_the_end() -> None:
    assert not Cut(7, -1, "second", 7).has_lost(LogPoint(9, -1))
    assert not Cut(7, -1, "second", 7).has_lost(LogPoint(9, 3))


def test_of_two_orders_about_one_topic_the_first_says_where_copies_begin() -> None:
    """Each has written the definitions, and copies may have begun at those of the first already."""
    first, second = Cut(100, -1, "second", 100), Cut(140, -1, "second", 140)
    assert second.after(first) == first
    assert Cut(300, 4, "second", 140).after(first) == Cut(300, 4, "second", 100)
    other = Cut(9, -1, "third", 9)
    assert [other.after(first), first.after(None), Cut(50, 3).after(Cut(80, 2))] == [other, first, Cut(50, 3)]


def test_an_order_is_followed_by_a_plan_that_accepts_the_same() -> None:
    order = Cut(140, -1, "second", 140)
    assert order.is_in(Cut(100, -1, "second", 100))
    assert not any(order.is_in(each) for each in (None, Cut(80, 3), Cut(140, -1, "first", 140)))
    loss = Cut(300, 4, "second", 140)
    assert loss.is_in(Cut(300, 4, "second", 100))
    assert not loss.is_in(Cut(100, -1, "second", 100))
    assert not Cut(80, 3).is_in(Cut(90, 3))
