"""Comparisons of event times with points behind the clock, which may be beyond 64 bits.

The interpreter's loops (run.py, simple.py) call these kernels.
"""

from typing import Any

import numpy as np

from reservoir.native.jit import jit


@jit
def is_passed(time: Any, clock: Any, delta: Any) -> Any:
    """Whether time <= clock - delta, without wrapping: no time is at or before a point below the least int64."""
    return clock >= np.int64(-(2**63)) + delta and time <= clock - delta
