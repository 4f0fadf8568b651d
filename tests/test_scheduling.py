"""How tests are shared among workers: groups stay together and begin first, no test is lost, none runs twice."""

import random
import subprocess
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from tests.scheduling import ONE_JVM, GroupStealing

TESTS = [
    f"tests/a.py::test_{ONE_JVM}[1-{ONE_JVM}s]",
    f"tests/spark/a.py::test[{ONE_JVM}]",
    *(f"tests/b.py::test[{n}]" for n in range(20)),
    *(f"tests/spark/a.py::test[{n}-{ONE_JVM}]" for n in range(4)),
    *(f"tests/spark/b.py::test[{ONE_JVM}-{n}]" for n in range(4)),
]
GROUP = [TESTS[1], *TESTS[-8:]]


class Worker:
    """Runs the first test of its queue where it knows the next one, or that there is none."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.queue: list[int] = []
        self.ran: list[str] = []
        self.shutting_down = False
        self.stolen: Sequence[int] | None = None

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        assert not self.shutting_down
        self.queue += indices

    def send_steal(self, indices: Sequence[int]) -> None:
        self.stolen = list(indices)

    def shutdown(self) -> None:
        self.shutting_down = True

    @property
    def can_run(self) -> bool:
        return len(self.queue) > 1 or (self.shutting_down and len(self.queue) == 1)

    def give_back(self) -> list[int]:
        """What is to be stolen, unless any of it runs."""
        assert self.stolen is not None
        stolen = list(self.stolen) if set(self.stolen) <= set(self.queue[1:]) else []
        self.queue = [each for each in self.queue if each not in stolen]
        self.stolen = None
        return stolen


def joined(scheduler: Any, *workers: Worker) -> None:
    for worker in workers:
        scheduler.add_node(worker)
    for worker in workers:
        scheduler.add_node_collection(worker, TESTS)
    scheduler.schedule()


def play(scheduler: Any, workers: list[Worker], source: random.Random, crash_at: int | None = None) -> None:
    """Run all tests, in any order that the workers may have; at a step one of them crashes and another comes."""
    for step in range(1_000):
        if step == crash_at:
            gone = workers.pop(source.randrange(len(workers)))
            crashed = gone.queue[0] if gone.queue else None
            assert scheduler.remove_node(gone) == (None if crashed is None else TESTS[crashed])
            gone.ran += [] if crashed is None else [TESTS[crashed]]
            workers.append(Worker("another"))
            joined(scheduler, workers[-1])
        able = [each for each in workers if each.can_run or each.stolen is not None]
        if not able:
            break
        worker = source.choice(able)
        if worker.stolen is not None:
            scheduler.remove_pending_tests_from_node(worker, worker.give_back())
        else:
            index = worker.queue.pop(0)
            worker.ran.append(TESTS[index])
            scheduler.mark_test_complete(worker, index)
    assert not any(each.queue for each in workers)
    assert scheduler.tests_finished
    assert not scheduler.has_pending


def scheduler_of(workers: int) -> Any:
    config: Any = SimpleNamespace(getvalue=lambda _: [f"{workers}*popen"])
    return GroupStealing(config)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_group_stays_together_and_begins_first(seed: int, count: int) -> None:
    scheduler, workers = scheduler_of(count), [Worker(f"w{n}") for n in range(count)]
    joined(scheduler, *workers)
    assert not scheduler.tests_finished
    play(scheduler, workers, random.Random(seed))
    assert sorted(name for each in workers for name in each.ran) == sorted(TESTS)
    [owner] = [each for each in workers if not set(GROUP).isdisjoint(each.ran)]
    assert owner.ran[: len(GROUP)] == GROUP


@pytest.mark.parametrize("seed", range(20))
def test_a_group_whose_worker_crashed_goes_on_with_one(seed: int) -> None:
    scheduler, workers = scheduler_of(2), [Worker("w0"), Worker("w1")]
    all_workers = list(workers)
    joined(scheduler, *workers)
    source = random.Random(seed)
    play(scheduler, workers, source, crash_at=source.randrange(20))
    all_workers += [each for each in workers if each not in all_workers]
    assert sorted(name for each in all_workers for name in each.ran) == sorted(TESTS)
    assert len([each for each in workers if not set(GROUP).isdisjoint(each.ran)]) <= 1


def test_every_test_that_has_the_session_is_named_as_one_of_the_group(pytestconfig: pytest.Config) -> None:
    """By pytest itself: where that changed, each worker would have a JVM, and nothing would say so."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "0",
        "--collect-only",
        "-q",
        "tests/spark/test_translate.py",
    ]
    listed = subprocess.run(command, cwd=pytestconfig.rootpath, capture_output=True, text=True, timeout=120)
    assert f"::test_expressions_are_the_oracles[{ONE_JVM}-0]" in listed.stdout, listed.stdout
