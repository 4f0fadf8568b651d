"""Long random runs on the smallest pool: faults in nearly every operation, checkpoints under way, crashes."""

import random
from collections import Counter
from collections.abc import Callable

import pytest

from railgun.state.status import DRAIN, FAULT, ROOM
from tests.counts import seeds
from tests.state.paged.paged_model import COUNTED, MAPS, Model

Step = Callable[[Model, random.Random], None]


def _many(model: Model, rng: random.Random, act: Callable[[tuple[int, int], int], None]) -> None:
    start, step = rng.randrange(512), rng.choice([1, -1, 37])
    for i in range(rng.randrange(150)):
        act(((start + step * i) & 511, 0), i)


def _insert(model: Model, rng: random.Random) -> None:
    cell = rng.randrange(COUNTED, MAPS)
    _many(model, rng, lambda key, i: model.insert(cell, key, i))


def _delete(model: Model, rng: random.Random) -> None:
    cell = rng.randrange(COUNTED, MAPS)
    _many(model, rng, lambda key, _: model.delete(cell, key))


def _count(model: Model, rng: random.Random) -> None:
    cell, delta = rng.randrange(COUNTED), rng.choice([1, -1])
    _many(model, rng, lambda key, _: model.count(cell, key, delta))


def _look(model: Model, rng: random.Random) -> None:
    model.look(rng.randrange(MAPS), (rng.randrange(512), rng.randrange(3)))


def _clear(model: Model, rng: random.Random) -> None:
    model.clear(rng.randrange(MAPS))


def _drop_tombstones(model: Model, rng: random.Random) -> None:
    model.driver.pool.free_deferred(rng.randrange(20))


def _raw(model: Model, rng: random.Random) -> None:
    if model.content.raw and rng.random() < 0.7:
        number = rng.choice(sorted(model.content.raw))
        model.raw_look(number)
        model.raw_change(number, rng.randrange(1 << 60))
        if rng.random() < 0.5:
            model.raw_free(number)
    else:
        model.raw_new(rng.choice([1, 4, 5, 34, 68, 200]))


def _string(model: Model, rng: random.Random) -> None:
    if model.content.strings and rng.random() < 0.5:
        index = rng.choice(sorted(model.content.strings))
        model.string_look(index)
        model.string_let_go(index)
    else:
        model.string_hold(rng.randrange(12))


def _checkpoint(model: Model, rng: random.Random) -> None:
    if rng.random() < 0.3:
        model.begin_checkpoint()
    for _ in range(rng.randrange(10)):
        model.step_checkpoint(rng.choice([1, 300, 5000]))


def _crash(model: Model, rng: random.Random) -> None:
    if rng.random() < 0.3:
        model.crash()


STEPS: dict[Step, int] = {
    _insert: 25,
    _delete: 20,
    _count: 12,
    _look: 5,
    _clear: 2,
    _drop_tombstones: 6,
    _raw: 6,
    _string: 12,
    _checkpoint: 10,
    _crash: 2,
}


def run(seed: int, steps: int) -> Counter[int]:
    """One run; returns how often each status was served."""
    rng = random.Random(seed)
    model = Model()
    served: Counter[int] = Counter()
    for step in rng.choices(list(STEPS), list(STEPS.values()), k=steps):
        step(model, rng)
        served += model.driver.served
        model.driver.served.clear()
    model.check_all()
    return served


@pytest.mark.parametrize("first", seeds(range(0, 4, 4), range(0, 12, 4)))
def test_random_operations_on_the_smallest_pool(first: int) -> None:
    served: Counter[int] = Counter()
    for seed in range(first, first + 4):
        served += run(seed, 400)
    # The runs are worth something only if every kind of status was served, and often.
    assert served[FAULT] > 10_000
    assert served[ROOM] > 500
    assert served[DRAIN] > 2


@pytest.mark.torture
@pytest.mark.parametrize("first", range(1000, 3000, 100))
def test_random_operations_at_length(first: int) -> None:
    for seed in range(first, first + 100):
        run(seed, 400)
