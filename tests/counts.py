"""How much of a test is tried: little in the test run, and all of it where `make torture` asks for it."""

import os
import random
from collections.abc import Iterable
from typing import Any

import pytest

_IS_FULL = os.environ.get("RAILGUN_TEST_COUNTS") == "full"
# Where the fresh seeds of this run begin; the run hands it to its workers, which must all have the same tests.
FIRST_SEED = "RAILGUN_TEST_FIRST_SEED"
_FRESH_FROM, _FRESH_TO = 10_000, 1_000_000_000


def begin_run() -> None:
    """Choose where fresh seeds begin, unless the environment says it. Called once, by the process that the run is."""
    os.environ.setdefault(FIRST_SEED, str(random.SystemRandom().randrange(_FRESH_FROM, _FRESH_TO)))


def fresh_seeds(count: int, step: int) -> list[Any]:
    """The torture run's values of a parameter, one for each `step` of `count` seeds that no test run has."""
    first = int(os.environ[FIRST_SEED])
    return [pytest.param(seed, marks=pytest.mark.torture) for seed in range(first, first + count, step)]


def examples(few: int, full: int) -> int:
    """How many examples Hypothesis tries."""
    return full if _IS_FULL else few


def seeds(few: Iterable[int], full: Iterable[int]) -> list[Any]:
    """The values of a parameter: of all of them, those that are not among the few are the torture run's."""
    some = list(few)
    rest = [each for each in full if each not in some]
    return [*some, *(pytest.param(each, marks=pytest.mark.torture) for each in rest)]
