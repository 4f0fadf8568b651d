"""A model of one task's copies: a log, the topic of reports, processes that are killed, halted and cut off.

The copies decide by the product's own `Answering` and `Hearing`. All else is modelled, a hundred ticks to the second.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from railgun.cluster.answering import Answering
from railgun.cluster.copies import CopyName, CopyReport, CopyState, LogPoint
from railgun.cluster.hearing import Hearing, Timing

TICK_S = 0.01
TAKEOVER = 100
"""In ticks, like everything here."""
_MOVING, _IDLE, _MOVED = 5, 20, 20
_NEVER = 10**9
TIMING = Timing()


@dataclass(frozen=True, slots=True)
class Mistakes:
    """What a wrong implementation would do; each of them has to be caught."""

    passes_the_limit: bool = False
    checkpoints_ahead: bool = False
    reports_position_when_failed: bool = False
    answers_when_behind: bool = False
    never_stops: bool = False


RIGHT = Mistakes()


@dataclass(frozen=True, slots=True)
class _Written:
    """A report in the topic, and its number among those of its unit's run."""

    number: int
    report: CopyReport


class ModelCopy:
    """One copy, and the unit that runs it.

    outstanding: replies that are not acknowledged: the offset, and when they will be.
    *_until: what is halted or stuck, and how long for.
    """

    def __init__(self, name: int, plan: Sequence[int], now: int, checkpoint: int = 0) -> None:
        self.name, self.plan = name, list(plan)
        self.checkpoint = checkpoint
        self.halted_until = self.cut_until = self.acks_until = self.fetch_until = 0
        self.open(now)

    def open(self, now: int) -> None:
        self.generation = now
        self.position, self.end = self.checkpoint, 0
        self.outstanding: list[tuple[int, int]] = []
        self.is_up, self.has_failed = True, False
        self.hearing = Hearing(TIMING, now * TICK_S)
        self.answering = Answering(
            _name(self.name), [_name(each) for each in self.plan], TIMING, self.hearing
        )
        self.read = 0
        self.next_round = self.next_report = now
        self.moved, self.moved_to = now, self.position

    @property
    def is_answering(self) -> bool:
        return self.is_up and not self.has_failed and self.answering.is_answering

    @property
    def replied(self) -> int:
        return min((offset for offset, _ in self.outstanding), default=self.position)


class World:
    """The copies, the log and the topic. answered: by offset, when it was answered first."""

    def __init__(self, seed: int, copies: int, mistakes: Mistakes = RIGHT) -> None:
        self.random, self.mistakes = random.Random(seed), mistakes
        self.now = 0
        self.log: list[int] = []
        self.answered: dict[int, int] = {}
        self.repeats = self.changes = 0
        self._sent: list[tuple[int, _Written]] = []
        self._topic: list[_Written] = []
        self.plan = list(range(copies))
        self.copies = [ModelCopy(name, self.plan, 0) for name in self.plan]
        self.speed = 40

    def run(self, ticks: int, records: Callable[[], int] = lambda: 0) -> None:
        """Let time pass. records: how many records come in one tick."""
        for _ in range(ticks):
            self.now += 1
            self.log += [self.now] * records()
            self._append()
            for copy in self.random.sample(self.copies, len(self.copies)):
                if copy.is_up and copy.halted_until <= self.now:
                    self._step(copy)

    def longest_wait(self, since: int) -> int:
        """How long a record that came since then waited, or still waits."""
        return max(
            (self.answered.get(offset, self.now) - at for offset, at in enumerate(self.log) if at >= since),
            default=0,
        )

    def kill(self, copy: ModelCopy) -> None:
        """Kill it; some of what it had sent arrives all the same."""
        for offset, at in copy.outstanding:
            if at < _NEVER and self.random.random() < 0.5:
                self.answered.setdefault(offset, self.now)
        copy.is_up = False

    def fail(self, copy: ModelCopy) -> None:
        """Stop the task for an error: its position moved, but its last replies were not handed over."""
        if copy.is_answering:
            ahead = min(self.random.randrange(5), len(self.log) - copy.position)
            copy.outstanding += [(copy.position + number, _NEVER) for number in range(ahead)]
            copy.position += ahead
        copy.has_failed = True

    def set_plan(self, plan: Sequence[int]) -> None:
        """Change the plan; each copy hears of it after a while."""
        self.plan = list(plan)

    def _append(self) -> None:
        due = [each for at, each in self._sent if at <= self.now]
        self._sent = [(at, each) for at, each in self._sent if at > self.now]
        self._topic += due

    def _step(self, copy: ModelCopy) -> None:
        now, now_s = self.now, self.now * TICK_S
        if copy.acks_until <= now and not copy.has_failed:
            for offset in [offset for offset, at in copy.outstanding if at <= now]:
                self.repeats += offset in self.answered
                self.answered.setdefault(offset, now)
            copy.outstanding = [each for each in copy.outstanding if each[1] > now]
        if copy.fetch_until <= now:
            while copy.end < len(self.log) and self.log[copy.end] + 1 <= now:
                copy.end += 1
        copy.hearing.look(now_s)
        if copy.cut_until <= now:
            self._read(copy, now_s)
        if copy.plan != self.plan and self.random.random() < 0.05:
            copy.plan = list(self.plan)
            copy.answering.follow([_name(each) for each in copy.plan], now_s)
        if now >= copy.next_round and not copy.has_failed:
            self._round(copy, now_s)
        if now >= copy.next_report and copy.cut_until <= now:
            self._report(copy, now_s)

    def _read(self, copy: ModelCopy, now_s: float) -> None:
        for each in self._topic[copy.read :]:
            if each.report.copy == _name(copy.name) and each.report.generation == copy.generation:
                copy.hearing.read(each.number, now_s)
            copy.answering.hear(each.report, now_s)
        copy.read = len(self._topic)

    def _round(self, copy: ModelCopy, now_s: float) -> None:
        rule, span = copy.answering, self.random.randint(1, 5)
        copy.next_round = self.now + span
        before = rule.is_answering
        if self.mistakes.answers_when_behind:
            rule.limit = LogPoint(min(rule.limit.offset, copy.position))
        is_answering = rule.decide(now_s, copy.position, copy.end)
        if self.mistakes.never_stops and before:
            is_answering = rule.is_answering = True
        self.changes += is_answering != before
        end = min(copy.end, copy.position + self.speed * span)
        if is_answering:
            copy.outstanding += [
                (offset, self.now + span + self.random.randint(1, 3)) for offset in range(copy.position, end)
            ]
        elif not self.mistakes.passes_the_limit:
            end = min(end, rule.limit.offset)
        copy.position = max(copy.position, end)
        if copy.position != copy.moved_to:
            copy.moved, copy.moved_to = self.now, copy.position
        if rule.is_leaving and not is_answering and not copy.outstanding:
            copy.checkpoint, copy.is_up = copy.replied, False
        elif self.random.random() < 0.01:
            covered = copy.position if self.mistakes.checkpoints_ahead else copy.replied
            copy.checkpoint = max(copy.checkpoint, covered)

    def _report(self, copy: ModelCopy, now_s: float) -> None:
        interval = _MOVING if self.now - copy.moved < _MOVED else _IDLE
        copy.next_report = self.now + interval
        has_failed = copy.has_failed
        is_wrong = has_failed and self.mistakes.reports_position_when_failed
        report = CopyReport(
            _name(copy.name),
            copy.generation,
            CopyState.FAILED if has_failed else copy.answering.state(now_s),
            copy.answering.is_leaving,
            copy.position,
            LogPoint(copy.position if is_wrong else copy.replied),
            max(copy.end, copy.position),
            interval * TICK_S,
        )
        number = copy.hearing.write(now_s, interval * TICK_S)
        self._sent.append((self.now + self.random.randint(1, 3), _Written(number, report)))


def _name(copy: int) -> CopyName:
    return CopyName(f"node-{copy}", 0)


# --- random faults -------------------------------------------------------------------------------------

_FAULTY, _HEALING = 4_000, 5_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """lost: how many records were never answered.  answering: how many copies answer at last."""

    lost: int
    answering: int
    repeats: float


def healed(seed: int, mistakes: Mistakes = RIGHT) -> Outcome:
    """Let faults happen for a while, end them all, and return what came of it."""
    world = World(seed, random.Random(seed).choice((1, 2, 3)), mistakes)
    for _ in range(_FAULTY // 10):
        world.run(10, lambda: world.random.randrange(2))
        _fault(world)
        for copy in world.copies:
            if not copy.is_up and world.random.random() < 0.05:
                copy.open(world.now)
    world.copies = [copy for copy in world.copies if copy.name in world.plan]
    for copy in world.copies:
        copy.halted_until = copy.cut_until = copy.acks_until = copy.fetch_until = 0
        if copy.has_failed or copy.answering.is_leaving or not copy.is_up:
            copy.plan = list(world.plan)
            copy.open(world.now)
    world.run(_HEALING)
    lost = len(world.log) - len(world.answered)
    return Outcome(
        lost, sum(copy.is_answering for copy in world.copies), world.repeats / max(1, len(world.log))
    )


def _fault(world: World) -> None:
    chance, copy = world.random.random(), world.random.choice(world.copies)
    until = world.now + world.random.randrange(10, 600)
    if chance < 0.02:
        world.kill(copy)
    elif chance < 0.03:
        copy.halted_until = until
    elif chance < 0.04:
        copy.cut_until = until
    elif chance < 0.045:
        copy.acks_until = until
    elif chance < 0.05:
        copy.fetch_until = until
    elif chance < 0.06:
        world.set_plan(world.random.sample(world.plan, len(world.plan)))
    elif chance < 0.07 and len(world.plan) < 4:
        name = max(each.name for each in world.copies) + 1
        world.set_plan([*world.plan, name])
        world.copies.append(
            ModelCopy(name, world.plan, world.now, world.random.choice(world.copies).checkpoint)
        )
    elif chance < 0.075 and len(world.plan) > 1:
        gone = world.random.choice(world.plan)
        world.set_plan([each for each in world.plan if each != gone])
    elif chance < 0.08:
        copy.answering.leave(world.now * TICK_S)
    elif chance < 0.085 and copy.is_up and not copy.has_failed:
        world.fail(copy)


def mistake(name: str) -> Mistakes:
    """Return the mistake of a name."""
    return replace(RIGHT, **{name: True})
