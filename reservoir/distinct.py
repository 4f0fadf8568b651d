"""The distinct values of an array, without numpy's masked arrays.

When `np.unique` is first called for values alone, it imports masked arrays, which takes 50 ms while events wait.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Item = TypeVar("_Item", bound=np.generic)


def distinct(values: NDArray[_Item]) -> NDArray[_Item]:
    """Return each value of an array [n] once, ascending, [m]."""
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]
