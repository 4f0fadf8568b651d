"""Words on the stack of a kernel: as many as each asks for, apart from each other."""

from typing import Any

import numpy as np

from railgun.aggregators.exact.limbs import clear
from reservoir.native.jit import jit, ld64, st64, stack_words

_FEW = 3
_MORE = 40
_LEAST = 1


@jit
def _filled(count: int) -> Any:
    """The sum of words in four areas, the greatest of them cleared last; 0 if they overlap."""
    few, more, least, again = stack_words(_FEW), stack_words(_MORE), stack_words(_LEAST), stack_words(_FEW)
    for i in range(_FEW):
        st64(few + 8 * i, np.uint64(count))
        st64(again + 8 * i, np.uint64(count + 1))
    st64(least, np.uint64(count + 2))
    clear(more, _MORE)
    total = ld64(least)
    for i in range(_FEW):
        total += ld64(few + 8 * i) + ld64(again + 8 * i)
    return total


def test_areas_of_different_sizes_do_not_overlap() -> None:
    assert _filled(100) == 102 + 3 * 100 + 3 * 101
