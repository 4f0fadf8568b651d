"""Who waits for a token's limit: lines in turn, and single events beside them, at a clock that the test sets."""

import pytest

from railgun.access.rates import Rate

LIMIT, STEPS_PER_S, SECONDS = 100, 1_000, 50
EVENTS = LIMIT * SECONDS


class Lines:
    """Lines without end, which wait for their turn again and again."""

    def __init__(self, rate: Rate) -> None:
        self._rate, self.sent = rate, 0
        self._due_s = rate.queue(rate.portion, 0.0)

    def step(self, now_s: float) -> None:
        while now_s >= self._due_s:
            self._rate.leave(self._rate.portion, are_sent=True)
            self.sent += self._rate.portion
            assert self.sent <= 2 * EVENTS, "nothing limits it"
            self._due_s = now_s + self._rate.queue(self._rate.portion, now_s)


def sent(streams: int, *, has_single_events: bool) -> list[int]:
    """How many events each stream of lines sent, and at the end how many single events were taken of as many as could
    be asked for.
    """
    rate = Rate(LIMIT, 1, now_s=0.0)
    lines, singles = [Lines(rate) for _ in range(streams)], 0
    for step in range(SECONDS * STEPS_PER_S):
        now_s = step / STEPS_PER_S
        for each in lines:
            each.step(now_s)
        if has_single_events and rate.take(1, now_s) == 0:
            singles += 1
    return [*(each.sent for each in lines), singles]


@pytest.mark.parametrize("streams", [1, 2, 5])
def test_neither_lines_nor_single_events_starve(streams: int) -> None:
    found = sent(streams, has_single_events=True)
    share = EVENTS / (streams + 1)
    assert all(0.7 * share < each < 1.4 * share for each in found)
    assert sum(found) == pytest.approx(EVENTS, rel=0.05)


@pytest.mark.parametrize("streams", [1, 3])
def test_lines_alone_have_all_of_the_limit(streams: int) -> None:
    found = sent(streams, has_single_events=False)
    assert sum(found) == pytest.approx(EVENTS, rel=0.05)
    assert max(found) - min(found[:-1]) <= EVENTS * 0.05


def test_lines_leave_no_long_debt() -> None:
    """However many wait: a single event has to wait for about one portion."""
    rate = Rate(LIMIT, 1, now_s=0.0)
    rate.take(LIMIT, 0.0)
    turn_s = rate.queue(rate.portion, 0.0)
    assert turn_s == pytest.approx(rate.portion / LIMIT)
    rate.leave(rate.portion, are_sent=True)
    assert rate.take(1, 0.0) == pytest.approx((rate.portion + 1) / LIMIT)


def test_who_leaves_the_queue_before_the_turn_costs_nothing() -> None:
    rate = Rate(LIMIT, 1, now_s=0.0)
    rate.take(LIMIT, 0.0)
    rate.queue(LIMIT, 0.0)
    assert rate.queue(1, 0.0) == pytest.approx(1.01)
    rate.leave(LIMIT, are_sent=False)
    rate.leave(1, are_sent=False)
    assert rate.queue(1, 0.0) == pytest.approx(0.01)
    assert rate.take(LIMIT, 1.0) == 0


def test_what_is_given_back_may_be_taken_again() -> None:
    rate = Rate(LIMIT, 1, now_s=0.0)
    assert rate.take(LIMIT, 0.0) == 0
    rate.give_back(5)
    assert rate.take(6, 0.0) > 0
    assert rate.take(5, 0.0) == 0
    rate.give_back(10 * LIMIT)
    assert rate.take(LIMIT + 1, 0.0) == 0
    assert rate.take(1, 0.0) == pytest.approx(0.02)
