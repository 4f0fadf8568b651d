"""`count_distinct`: a counted multiset of values, or a plain set in windows that no value leaves.

Cell: the root of a map from a value's two words to the number of its occurrences. A string is kept as its hash alone,
because only equality matters. The second word of the root is the number of entries, which is the result.
"""

from typing import Any

import numpy as np

from railgun.aggregators.trees import FOUND_WORDS
from railgun.state.paged.ordered_map import om_count, om_get, om_insert
from reservoir.native.jit import jit, ld64, stack_words

u = np.uint64

WORDS = 2


@jit
def count_value(ctx: int, root: int, v0: Any, v1: Any, delta: int) -> Any:
    """Add an occurrence of a value to a multiset (delta 1) or remove one (delta −1); 0 or a status."""
    return min(np.int64(om_count(ctx, root, v0, v1, delta)), np.int64(0))


@jit
def add_to_set(ctx: int, root: int, v0: Any, v1: Any) -> Any:
    """Add a value to a set. Writes nothing, and makes no page dirty, if it is there already. 0 or a status."""
    found = om_get(ctx, root, v0, v1, stack_words(FOUND_WORDS))
    if found != 0:
        return min(np.int64(found), np.int64(0))
    return min(np.int64(om_insert(ctx, root, 1, v0, v1, u(1), u(0))), np.int64(0))


@jit
def distinct_values(root: int) -> Any:
    """The number of distinct values."""
    return ld64(root + 8)
