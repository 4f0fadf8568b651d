"""The distinct values of an array, as numpy knows them."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import DTypeLike

from reservoir.distinct import distinct

_CHILD = """
import sys
import numpy as np
from reservoir.distinct import distinct
distinct(np.array([3, 1, 3]))
sys.exit(int("numpy.ma" in sys.modules))
"""


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.uint8, np.int32])
def test_they_are_those_of_numpy(dtype: DTypeLike) -> None:
    random = np.random.default_rng(1)
    for n in (0, 1, 2, 3, 17, 1_000):
        for span in (1, 3, 200):
            values = random.integers(0, span, n).astype(dtype)
            before, found = values.copy(), distinct(values)
            assert found.dtype == values.dtype
            assert found.tolist() == np.unique(values).tolist()
            assert values.tolist() == before.tolist()


def test_masked_arrays_are_not_imported() -> None:
    assert subprocess.run([sys.executable, "-c", _CHILD], check=False).returncode == 0
