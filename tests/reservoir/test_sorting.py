"""Slots stay sorted by time, equal times in order of arrival."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reservoir.native.jit import address
from reservoir.open_region.ring import merge_slots, sort_slots, upper_bound

times = st.lists(st.integers(-5, 5) | st.sampled_from([-(1 << 63), (1 << 63) - 1]), max_size=70)


@given(times, times)
def test_new_slots_are_merged_into_order(old: list[int], new: list[int]) -> None:
    table = np.array([*sorted(old), *new, 0], np.int64)
    order = np.zeros(len(table) + 1, np.uint32)
    order[: len(old)] = np.arange(len(old))
    slots = np.arange(len(old), len(old) + len(new), dtype=np.uint32)
    scratch = np.concatenate([slots, np.zeros_like(slots), [np.uint32(0)]]).astype(np.uint32)
    found = sort_slots(address(table), address(scratch), address(scratch) + 4 * len(new), len(new))
    merge_slots(address(table), address(order), 0, len(old), found, len(new))
    wanted = sorted(range(len(old) + len(new)), key=lambda slot: (table[slot], slot))
    assert order[: len(wanted)].tolist() == wanted


@given(times, st.integers(-6, 6))
def test_upper_bound(old: list[int], time: int) -> None:
    table = np.array([*sorted(old), 0], np.int64)
    order = np.arange(len(table), dtype=np.uint32)
    found = upper_bound(address(table), address(order), 0, len(old), time)
    assert found == sum(held <= time for held in old)
