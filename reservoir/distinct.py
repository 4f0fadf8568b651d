"""The distinct values of an array, without numpy's masked arrays.

`np.unique` imports those when it is first called for values alone: 50 ms, amid events.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Item = TypeVar("_Item", bound=np.generic)


def distinct(values: NDArray[_Item]) -> NDArray[_Item]:
    """values [n]: each once, ascending, [m]."""
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]
