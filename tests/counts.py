"""How much of a test is tried: little in the test run, and all of it where `make torture` asks for it."""

import os
from collections.abc import Iterable
from typing import Any

import pytest

_IS_FULL = os.environ.get("RAILGUN_TEST_COUNTS") == "full"


def examples(few: int, full: int) -> int:
    """How many examples Hypothesis tries."""
    return full if _IS_FULL else few


def seeds(few: Iterable[int], full: Iterable[int]) -> list[Any]:
    """The values of a parameter: of all of them, those that are not among the few are the torture run's."""
    some = list(few)
    rest = [each for each in full if each not in some]
    return [*some, *(pytest.param(each, marks=pytest.mark.torture) for each in rest)]
