"""Two copies do not take turns: one that was taken over from waits before it takes activity back."""

from collections.abc import Callable

import pytest

from railgun.cluster.answering import Answering
from railgun.cluster.copies import CopyName, CopyReport, CopyState, LogPoint
from railgun.cluster.hearing import Hearing, Timing
from railgun.cluster.turns import Turns
from tests.cluster.world import ModelCopy, World, healed
from tests.counts import seeds

A, B, C = (CopyName(f"node-{number}", 0) for number in range(3))
TIMING = Timing()
_SECOND, _MINUTE = 100, 6_000


class Watched:
    """The copy A of a task whose log has one record; what others report is said by hand. A round takes 0.1 s."""

    def __init__(self, copy: CopyName = A) -> None:
        self.now_s, self.position, self._copy = 0.0, 1, copy
        self._hearing = Hearing(TIMING, 0.0)
        self.rule = Answering(copy, [A, B], TIMING, self._hearing)
        self.end, self.drops_replies = 1, False

    def say(
        self, state: CopyState, *, copy: CopyName = B, leaving: bool = False, generation: int = 1
    ) -> None:
        report = CopyReport(copy, generation, state, leaving, 1, LogPoint(1), 1, 0.2)
        self.rule.hear(report, self.now_s)

    def run(self, seconds: float, others: CopyState | None = None, **said: object) -> bool:
        """Let time pass, in which the other copy is in one state, if it is heard at all."""
        for _ in range(round(seconds * 10)):
            self.now_s += 0.1
            self._hearing.read(self._hearing.write(self.now_s, 0.2), self.now_s)
            if others is not None:
                self.say(others, **said)  # type: ignore[arg-type]
            self.rule.decide(self.now_s, self.position, self.end, drops_replies=self.drops_replies)
        return self.rule.is_answering

    def pass_on(self) -> None:
        """Let the copy answer, and the other one begin all the same: this one was not heard."""
        assert self.run(2, CopyState.SILENT)
        assert not self.run(0.1, CopyState.ANSWERING)


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_a_copy_that_was_passed_takes_activity_back_after_a_while_at_the_limit(watched: Watched) -> None:
    watched.pass_on()
    assert not watched.run(9.8, CopyState.ANSWERING)
    assert watched.run(0.3, CopyState.ANSWERING)


def test_it_waits_twice_as_long_each_time_up_to_five_minutes(watched: Watched) -> None:
    for wait_s in (10, 20, 40, 80, 160, 300, 300):
        watched.pass_on()
        assert not watched.run(wait_s - 0.2, CopyState.ANSWERING)
        assert watched.run(0.3, CopyState.ANSWERING)


def test_after_an_hour_it_is_forgiven(watched: Watched) -> None:
    for _ in range(2):
        watched.pass_on()
        watched.run(30, CopyState.ANSWERING)
    watched.run(3_600, CopyState.SILENT)
    watched.pass_on()
    assert watched.run(10.2, CopyState.ANSWERING)


def test_the_time_below_the_limit_does_not_count(watched: Watched) -> None:
    watched.pass_on()
    watched.run(9, CopyState.ANSWERING)
    watched.position = 0
    watched.run(1.2, CopyState.ANSWERING)
    watched.position = 1
    assert not watched.run(9.8, CopyState.ANSWERING)
    assert watched.run(0.3, CopyState.ANSWERING)


@pytest.mark.parametrize(
    "said",
    [
        {"others": CopyState.SILENT},
        {"others": CopyState.FAILED},
        {"others": CopyState.CLOSED},
        {"others": CopyState.ANSWERING, "leaving": True},
    ],
)
def test_where_nobody_else_is_heard_answering_it_begins_at_once(
    watched: Watched, said: dict[str, object]
) -> None:
    watched.pass_on()
    watched.run(3, CopyState.ANSWERING)
    assert watched.run(0.1, **said)  # type: ignore[arg-type]


def test_where_the_other_is_not_heard_it_begins_after_the_time_of_a_take_over(watched: Watched) -> None:
    watched.pass_on()
    watched.run(3, CopyState.ANSWERING)
    assert watched.run(TIMING.takeover_s + 0.2)


def test_where_the_replies_of_the_other_are_stuck_it_begins(watched: Watched) -> None:
    watched.pass_on()
    # There is another record, to which nobody replies.
    watched.rule.decide(watched.now_s, 1, 2)
    assert not watched.run(4.8, CopyState.ANSWERING)
    assert watched.run(0.4, CopyState.ANSWERING)


def test_a_copy_that_took_over_from_stuck_replies_has_time_to_show_its_own(watched: Watched) -> None:
    """It was silent, at the limit, until it noticed that the first copy's replies do not arrive."""
    assert watched.run(2, CopyState.SILENT)
    watched.end = 2
    assert watched.run(TIMING.stuck_s(0.2) + 0.5, CopyState.SILENT)
    assert not watched.run(TIMING.stuck_s(0.2) - 0.2, CopyState.ANSWERING)


def test_a_copy_whose_unit_drops_replies_leaves_activity_to_another(watched: Watched) -> None:
    watched.pass_on()
    watched.drops_replies = True
    assert not watched.run(600, CopyState.ANSWERING)
    watched.drops_replies = False
    assert watched.run(0.2, CopyState.ANSWERING)


def test_where_nobody_else_answers_it_begins_though_its_unit_drops_replies(watched: Watched) -> None:
    watched.pass_on()
    watched.drops_replies = True
    assert watched.run(0.1, CopyState.SILENT)


def test_a_copy_that_has_not_answered_begins_at_once(watched: Watched) -> None:
    watched.position = 0
    watched.run(20, CopyState.ANSWERING)
    watched.position = 1
    assert watched.run(0.1, CopyState.ANSWERING)


@pytest.mark.parametrize("order", [[B, A], [A, C, B]])
def test_another_plan_forgives_it(watched: Watched, order: list[CopyName]) -> None:
    watched.pass_on()
    watched.rule.follow(order, watched.now_s)
    assert not watched.run(1, CopyState.ANSWERING) or order[0] == A
    watched.rule.follow([A, B], watched.now_s)
    assert watched.run(0.1, CopyState.ANSWERING)


def test_one_that_leaves_is_not_passed(watched: Watched) -> None:
    assert watched.run(2, CopyState.SILENT)
    watched.rule.leave(watched.now_s)
    assert watched.run(0.1, CopyState.SILENT)
    assert not watched.run(0.1, CopyState.ANSWERING)
    assert not watched.rule._turns.is_passed


def test_of_two_that_begin_at_once_the_first_goes_on(watched: Watched) -> None:
    watched.run(0.5, CopyState.SILENT)
    assert watched.run(0.1, CopyState.ANSWERING)
    assert watched.run(1.0, CopyState.ANSWERING)


class TestTheOneThatTookOver:
    """B, which took over from A in silence, hears A again."""

    @pytest.fixture
    def second(self) -> Watched:
        made = Watched(B)
        made.run(2, CopyState.ANSWERING, copy=A)
        assert made.run(1.5)
        return made

    def test_it_gives_the_first_time_to_notice(self, second: Watched) -> None:
        assert second.run(0.9, CopyState.ANSWERING, copy=A)
        assert second.run(5, CopyState.SILENT, copy=A)
        assert not second.run(0.1, CopyState.ANSWERING, copy=A)

    def test_it_stops_for_one_that_does_not_notice(self, second: Watched) -> None:
        """As a copy of an earlier release."""
        assert not second.run(1.2, CopyState.ANSWERING, copy=A)

    def test_it_stops_for_one_that_was_started_again(self, second: Watched) -> None:
        assert not second.run(0.1, CopyState.ANSWERING, copy=A, generation=2)


# --- amid copies of an earlier release ------------------------------------------------------------------


class _FormerTurns(Turns):
    """As in an earlier release: a copy takes activity back at once, and stops at once for one that comes before it."""

    def begin(self, now_s: float) -> None:
        pass

    def hear_begin(self, now_s: float) -> None:
        pass


@pytest.fixture
def mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some copies of the model are of an earlier release."""
    right = ModelCopy.open

    def begun(self: ModelCopy, now: int) -> None:
        right(self, now)
        if (self.name + now) % 2:
            self.answering._turns = _FormerTurns(TIMING)

    monkeypatch.setattr(ModelCopy, "open", begun)


@pytest.mark.usefixtures("mixed")
@pytest.mark.parametrize("seed", seeds(range(10), range(1_000)))
def test_after_faults_everything_is_answered_and_by_one_copy(seed: int) -> None:
    outcome = healed(seed)
    assert outcome.lost == 0
    assert outcome.answering == 1


# --- a slow disk ---------------------------------------------------------------------------------------

Slow = Callable[[World, ModelCopy], None]


def _stands_still(world: World, copy: ModelCopy) -> None:
    copy.halted_until = world.now + 2 * _SECOND


def _reports_before_it_looks(world: World, copy: ModelCopy) -> None:
    """Its thread that reads goes on. Its loop stands amid a round, and reports before it decides again."""
    copy.next_report = world.now + 2 * _SECOND
    copy.next_round = copy.next_report + 2


def _changes(seed: int, slow: Slow, minutes: int) -> int:
    """How often another copy answers than did before, while the first one is 2 s behind every 10 s."""
    world, who, changes = World(seed, 2), 0, 0
    world.run(5 * _SECOND, lambda: world.random.randrange(2))
    for tick in range(minutes * _MINUTE):
        if tick % (10 * _SECOND) == 0:
            slow(world, world.copies[0])
        world.run(1, lambda: world.random.randrange(2))
        answering = [copy.name for copy in world.copies if copy.is_answering and _goes_on(world, copy)]
        if len(answering) == 1 and answering != [who]:
            [who] = answering
            changes += 1
    assert world.longest_wait(0) <= 2 * _SECOND
    return changes


def _goes_on(world: World, copy: ModelCopy) -> bool:
    return copy.halted_until <= world.now and copy.next_round - world.now <= _SECOND // 2


@pytest.mark.parametrize("slow", [_stands_still, _reports_before_it_looks])
@pytest.mark.parametrize("seed", seeds(range(1), range(50)))
def test_a_slow_disk_changes_who_answers_a_few_times_only(seed: int, slow: Slow) -> None:
    assert 0 < _changes(seed, slow, minutes=10) <= 6


@pytest.mark.parametrize("slow", [_stands_still, _reports_before_it_looks])
def test_activity_that_is_taken_back_at_once_is_found(monkeypatch: pytest.MonkeyPatch, slow: Slow) -> None:
    monkeypatch.setattr(Turns, "waits", lambda self, now_s, reached_s: False)
    assert _changes(0, slow, minutes=2) > 6


def test_a_copy_that_does_not_notice_that_it_was_passed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Turns, "hear_begin", lambda self, now_s: None)
    assert _changes(0, _stands_still, minutes=2) > 6


def test_a_copy_that_stops_for_one_that_was_halted_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Answering, "_yields_to", lambda self, other, now_s: True)
    assert _changes(0, _reports_before_it_looks, minutes=2) > 6
