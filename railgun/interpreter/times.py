"""Comparisons of event times with points behind the clock, where the difference may leave 64 bits."""

from typing import Any

import numpy as np

from reservoir.native.jit import jit


@jit
def is_passed(time: Any, clock: Any, delta: Any) -> Any:
    """time <= clock - delta, without wrapping: below the least int64 lies nothing."""
    return clock >= np.int64(-(2**63)) + delta and time <= clock - delta
