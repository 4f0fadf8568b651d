"""The duplicate memory against a queue of ids: its horizon is exact, also while its index grows."""

import random
from collections import deque

import numpy as np
import pytest

from railgun.task import admission as admission_module
from railgun.task.admission import Admission


def admitted(admission: Admission, ids: list[int]) -> list[bool]:
    """Admit events with these ids, all at one time; of each, whether it was a duplicate."""
    n = len(ids)
    hashes = np.array(ids, np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    found = admission.admit(np.zeros(n, np.uint8), np.zeros(n, np.int64), hashes ^ np.uint64(7), hashes, n)
    return [bool(each) for each in found.duplicate]


def compare(horizon: int, seed: int, recalled: int = 0) -> None:
    rng = random.Random(seed)
    admission, known = Admission(0, False, horizon), deque[int](maxlen=horizon)
    if recalled:
        ids = np.arange(recalled, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        admission.expect(min(recalled, horizon))
        for part in np.array_split(np.column_stack((ids ^ np.uint64(7), ids)), 3):
            admission.recall(part)
        known.extend(range(recalled))
    fresh, total = recalled, 0
    while total < 3 * horizon + 5_000:
        batch: list[int] = []
        for _ in range(rng.choice((1, 3, 100, 700))):
            if rng.random() < 0.3 and fresh:
                # Around the horizon as often as anywhere.
                back = rng.choice((rng.randrange(1, fresh + 1), horizon + rng.randrange(-2, 3)))
                batch.append(max(0, fresh - back))
            else:
                batch.append(fresh)
                fresh += 1
        wanted: list[bool] = []
        for each in batch:
            wanted.append(each in known)
            if each not in known:
                known.append(each)
        # As arrays: of lists, pytest explains each difference, which takes a minute where it shows all of them.
        assert np.array_equal(admitted(admission, batch), wanted)
        total += len(batch)


@pytest.mark.parametrize("horizon", [1, 2, 100, 1_023, 1_024, 1_025, 1_100, 3_000, 5_000])
def test_exactly_the_ids_of_the_last_acceptances_are_known(horizon: int) -> None:
    compare(horizon, horizon)


@pytest.mark.parametrize("recalled", [10, 1_500, 3_000, 7_100])
def test_so_they_are_after_a_recovery(recalled: int) -> None:
    compare(3_000, recalled, recalled)


def test_no_horizon() -> None:
    assert admitted(Admission(0, False, 0), [1, 1, 1]) == [False] * 3


def test_an_index_that_loses_what_it_should_take_over_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    hold = Admission._allocate_index

    def forgetful(admission: Admission, slots: int) -> None:
        hold(admission, slots)
        admission._words[admission_module._OLD_INDEX] = 0

    monkeypatch.setattr(Admission, "_allocate_index", forgetful)
    with pytest.raises(AssertionError):
        compare(3_000, 1)
