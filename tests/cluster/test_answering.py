"""Who answers: no reply is lost whatever happens, and in the end exactly one copy answers."""

import pytest

from tests.cluster.world import TAKEOVER, TICK_S, World, healed, mistake
from tests.counts import seeds

_HELD = 20_000
# Within this time one that was taken over from has taken activity back.
_BACK = 200


@pytest.mark.parametrize("seed", seeds(range(30), range(3_000)))
def test_after_faults_everything_is_answered_and_by_one_copy(seed: int) -> None:
    outcome = healed(seed)
    assert outcome.lost == 0
    assert outcome.answering == 1


@pytest.mark.parametrize("name", ["passes_the_limit", "checkpoints_ahead", "reports_position_when_failed"])
def test_a_mistake_that_loses_replies_is_found(name: str) -> None:
    assert any(healed(seed, mistake(name)).lost for seed in range(30))


def test_a_copy_that_never_stops_is_found() -> None:
    assert any(healed(seed, mistake("never_stops")).answering != 1 for seed in range(30))


def _with_one_that_is_behind(seed: int, name: str = "") -> World:
    """The first copy answers; the second begins with nothing; the third has caught up."""
    world = World(seed, 3, mistake(name) if name else mistake("never_stops"))
    if not name:
        world = World(seed, 3)
    world.log = [0] * _HELD
    world.answered = dict.fromkeys(range(_HELD), 0)
    for copy in (world.copies[0], world.copies[2]):
        copy.position = copy.checkpoint = _HELD
    return world


def _rate(world: World) -> int:
    return world.random.randrange(2)


@pytest.mark.parametrize("seed", seeds(range(3), range(50)))
class TestTheLongestWait:
    """In ticks of 10 ms; the time-out is 100."""

    def test_after_a_kill(self, seed: int) -> None:
        world = self._settled(seed)
        self._kill(world)
        assert world.longest_wait(0) <= 2 * TAKEOVER

    def test_after_a_kill_in_a_quiet_minute(self, seed: int) -> None:
        world = self._settled(seed)
        changes = world.changes
        world.run(6_000)
        assert world.changes == changes
        self._kill(world)
        assert world.longest_wait(6_000) <= 2 * TAKEOVER

    def test_after_a_pause_of_the_others_before_a_kill(self, seed: int) -> None:
        world = self._settled(seed)
        for copy in world.copies[1:]:
            copy.halted_until = world.now + 120
        world.run(320, lambda: _rate(world))
        self._kill(world)
        assert world.longest_wait(0) <= 2 * TAKEOVER

    def test_while_the_first_one_is_halted_and_when_it_goes_on(self, seed: int) -> None:
        world = self._settled(seed)
        world.copies[0].halted_until = world.now + 5_000
        world.run(6_000, lambda: _rate(world))
        assert [copy.is_answering for copy in world.copies] == [False, False, True]
        world.run(_BACK, lambda: _rate(world))
        assert world.longest_wait(0) <= 3 * TAKEOVER
        assert [copy.is_answering for copy in world.copies] == [True, False, False]

    def test_when_it_leaves(self, seed: int) -> None:
        world = self._settled(seed)
        leaving = world.copies[0]
        leaving.answering.leave(world.now * TICK_S)
        began = world.now
        while leaving.is_up:
            world.run(1, lambda: _rate(world))
        assert world.now - began <= TAKEOVER
        world.copies.remove(leaving)
        world.run(500, lambda: _rate(world))
        assert world.longest_wait(0) <= TAKEOVER // 2

    @pytest.mark.parametrize("stuck", ["acks_until", "fetch_until"])
    def test_when_its_replies_or_its_log_are_stuck(self, seed: int, stuck: str) -> None:
        world = self._settled(seed)
        setattr(world.copies[0], stuck, 10**9)
        world.run(3_000, lambda: _rate(world))
        assert world.longest_wait(0) <= 8 * TAKEOVER

    def _settled(self, seed: int) -> World:
        world = _with_one_that_is_behind(seed)
        world.run(200, lambda: _rate(world))
        assert [copy.is_answering for copy in world.copies] == [True, False, False]
        return world

    def _kill(self, world: World) -> None:
        world.copies[0].is_up = False
        world.run(2_500, lambda: _rate(world))
        assert sum(copy.is_answering for copy in world.copies) == 1


def test_a_copy_that_is_behind_and_answers_makes_others_wait() -> None:
    world = _with_one_that_is_behind(0, "answers_when_behind")
    world.run(200, lambda: _rate(world))
    world.copies[0].is_up = False
    world.run(2_500, lambda: _rate(world))
    assert world.longest_wait(0) > 3 * TAKEOVER


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_all_leave_at_once(copies: int) -> None:
    world = World(0, copies)
    world.run(500, lambda: _rate(world))
    for copy in world.copies:
        copy.answering.leave(world.now * TICK_S)
    world.run(TAKEOVER)
    assert not any(copy.is_up for copy in world.copies)


@pytest.mark.parametrize("gone", [(), (0,), (1,)])
def test_all_are_killed_and_come_back(gone: tuple[int, ...]) -> None:
    world = World(1, 3)
    world.run(2_500, lambda: _rate(world))
    for copy in world.copies:
        world.kill(copy)
    world.run(3_000)
    began = world.now
    for copy in world.copies:
        if copy.name not in gone:
            copy.open(world.now)
    world.run(1_500, lambda: _rate(world))
    assert world.longest_wait(began) <= 3 * TAKEOVER
    assert len(world.answered) >= len(world.log) - 10


def test_a_copy_that_the_plan_does_not_name_leaves_once_another_answers() -> None:
    world = World(2, 2)
    world.run(500, lambda: _rate(world))
    world.set_plan([1])
    world.run(2 * TAKEOVER, lambda: _rate(world))
    assert [copy.is_answering for copy in world.copies] == [False, True]
    assert not world.copies[0].is_up
