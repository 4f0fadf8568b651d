"""In whatever order its background work runs, a task gives the same replies and ends in the same state, bit for bit."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from railgun.task.environment import TaskEnvironment
from railgun.task.replies import Replies
from railgun.task.settings import TaskSettings
from reservoir.executor import Executor
from reservoir.inline_executor import InlineExecutor
from reservoir.thread_executor import ThreadExecutor
from tests.counts import seeds
from tests.reliability.volume import ordered
from tests.strategies.case import Case
from tests.strategies.generate import Profile
from tests.strategies.seeded import case
from tests.task.player import TINY, LogWriter, TaskPlayer, assert_same

CHANGING = Profile(spread=False, explicit_warm=True, control_percent=8)
# Jobs that run where background work gets a turn: some, none (then they run where somebody waits), all.
_AT_ONCE = ((0, 0, 0, 1, 2, 9), (0,), (1_000,))
# A few dozen rows of some hundreds are in memory at a time.
TINIEST = replace(TINY, row_cache_bytes=1 << 15, sweep_interval_s=0.0)


class Clock:
    """Goes on by a moment whenever it is looked at."""

    def __init__(self) -> None:
        self._s = 0.0

    def __call__(self) -> float:
        self._s += 0.01
        return self._s


@dataclass
class Ran:
    """What came of a run. files: of the reservoir, by name.  stored: all that the store holds.  durable: the position
    of the last checkpoint, after each batch.  lanes: for each job, how many of them could have run one."""

    answers: dict[int, dict[str, Any]] = field(compare=False)
    digest: str
    files: dict[str, bytes]
    stored: list[tuple[bytes, bytes]]
    durable: list[int]
    evicted: int
    lanes: Sequence[int] = ()


class Player(TaskPlayer):
    """turn: lets some background work run, where it does not by itself."""

    def __init__(
        self,
        drawn: Case,
        folder: Path,
        settings: TaskSettings,
        seed: int,
        executor: Executor,
        turn: Callable[[], object],
    ) -> None:
        self.drawn, self.rng, self.turn = drawn, random.Random(seed), turn
        salts = random.Random(f"{seed} {type(executor).__name__}")
        super().__init__(
            folder,
            LogWriter(drawn),
            settings,
            TaskEnvironment(Clock(), Clock(), salts.randbytes, executor),
        )

    def run(self) -> Ran:
        durable, evicted, index = list[int](), 0, 0
        try:
            for batch in self.drawn.batches():
                if batch.restart:
                    evicted += self.task.table.stats().evicted
                    self.crash() if self.rng.random() < 0.5 else self.reopen()
                for step in batch.steps:
                    self.writer.write(index, step)
                    index += 1
                self.catch_up()
                self._between_batches()
                durable.append(self.task.checkpoints.durable_position)
            while self.task.fills.waiting:
                self.task.work()
            digest = self.task.digest()
            self.task.checkpoints.take()
            stored = self.task.store.scan_values(b"", b"\xff" * 64, 1 << 30)
            evicted += self.task.table.stats().evicted
        finally:
            self.task.close()
        files = {path.name: path.read_bytes() for path in (self.folder / "reservoir").iterdir()}
        return Ran(self.answers, digest, files, stored, durable, evicted)

    def _between_batches(self) -> None:
        for _ in range(self.rng.randrange(5)):
            if self.rng.random() < 0.5:
                self.turn()
            else:
                self.task.work(brief=self.rng.random() < 0.5)
        if self.rng.random() < 0.05:
            self.task.checkpoints.take()

    def _deliver(self, found: Replies) -> None:
        self.turn()
        super()._deliver(found)


def in_threads(drawn: Case, folder: Path, settings: TaskSettings, seed: int) -> Ran:
    return Player(drawn, folder, settings, seed, ThreadExecutor(), lambda: None).run()


def in_order(drawn: Case, folder: Path, settings: TaskSettings, seed: int, order: int) -> Ran:
    source, lanes = random.Random(order), list[int]()

    def choose(n: int) -> int:
        lanes.append(n)
        return source.randrange(n)

    executor, at_once = InlineExecutor(choose), _AT_ONCE[order % len(_AT_ONCE)]

    def turn() -> None:
        for _ in range(source.choice(at_once)):
            executor.run_next()

    ran = Player(drawn, folder, settings, seed, executor, turn).run()
    return replace(ran, lanes=lanes)


def check(drawn: Case, folder: Path, settings: TaskSettings, seed: int) -> Ran:
    """Play a case in threads, in two orders, and in one of these again; what came of that one."""
    threads = in_threads(drawn, folder / "threads", settings, seed)
    ran = in_order(drawn, folder / "first", settings, seed, 2 * seed)
    other = in_order(drawn, folder / "other", settings, seed, 2 * seed + 1)
    again = in_order(drawn, folder / "again", settings, seed, 2 * seed)
    for found in (ran, other, again):
        assert found.answers.keys() == threads.answers.keys()
        for index, answer in threads.answers.items():
            assert_same(answer, found.answers[index], f"seed {seed}, step {index}")
        assert found.digest == threads.digest, f"seed {seed}"
    # The same order is the same run, down to the bytes on the disk and the moment when each checkpoint was durable.
    assert ran == again, f"seed {seed}"
    return ran


@pytest.mark.parametrize("seed", seeds(range(4), range(8)))
def test_metrics_that_come_and_go(seed: int, tmp_path: Path) -> None:
    assert check(case(seed + 900, 120, CHANGING), tmp_path, TINY, seed).answers


@pytest.mark.parametrize("seed", range(4))
def test_more_rows_than_memory_holds(seed: int, tmp_path: Path) -> None:
    ran = check(ordered(seed, 900, keys=600).case(), tmp_path, TINIEST, seed)
    assert ran.evicted > 0
    assert len(set(ran.durable)) > 2
    assert max(ran.lanes) > 1, "there was something to choose"


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(100, 400))
def test_many(seed: int, tmp_path: Path) -> None:
    drawn = case(seed, 300, CHANGING) if seed % 2 else ordered(seed, 2_000, keys=900).case()
    check(drawn, tmp_path, TINIEST if seed % 2 == 0 else TINY, seed)
