"""Power goes between any two writes of pages: recovery gives the last commit, whole, and work goes on."""

import random
from collections.abc import Sequence

import pytest

from railgun.state.resident import Image
from tests.state.paged.memory_items import MemoryItems
from tests.state.paged.paged_model import Model
from tests.state.paged.test_pages_random import STEPS


class PowerCutError(Exception):
    """The power is gone."""


class CutItems(MemoryItems):
    """A store whose power goes before the n-th image or commit; None: never."""

    def __init__(self, steps_left: int | None) -> None:
        super().__init__()
        self.steps = 0
        self.steps_left = steps_left

    def _step(self) -> None:
        self.steps += 1
        if self.steps_left is not None and self.steps > self.steps_left:
            raise PowerCutError

    def write(self, images: Sequence[Image]) -> None:
        for image in images:
            self._step()
            super().write([image])

    def commit(self, epoch: int, meta: bytes) -> None:
        self._step()
        super().commit(epoch, meta)


def run_until_cut(seed: int, items: CutItems) -> Model:
    rng = random.Random(seed)
    steps = {step: weight for step, weight in STEPS.items() if step.__name__ != "_crash"}
    model = Model(items)
    try:
        for step in rng.choices(list(steps), list(steps.values()), k=150):
            step(model, rng)
    except PowerCutError:
        pass
    return model


@pytest.mark.parametrize("cuts", [15, pytest.param(60, marks=pytest.mark.torture)])
@pytest.mark.parametrize("seed", range(2))
def test_a_cut_anywhere_gives_the_last_commit(seed: int, cuts: int) -> None:
    whole = run_until_cut(seed, CutItems(None))
    assert whole.store.committed >= 2
    for cut in range(0, whole.store.steps, max(1, whole.store.steps // cuts)):
        items = CutItems(cut)
        model = run_until_cut(seed, items)
        items.steps_left = None
        model.crash()
        model.check_all()
