"""Searches for the highest rate at which a condition holds."""

import sys
import time
from collections.abc import Callable

from bench.load.outcome import Outcome

SEARCH_S = 180.0
_FIRST_PER_S, _STEP, _CLOSE = 1_000.0, 1.5, 1.05


def highest_rate(holds: Callable[[float], bool], at_most_per_s: float) -> float:
    """Find the highest rate, to a twentieth: in growing steps until it does not hold, then in between. 0 if none holds.

    A rate that fails is tried once more: a single pause of the machine shall not end the search. After SEARCH_S it is
    closed in on no further. Each step is told on standard error.
    """
    low, high = 0.0, 0.0
    rate_per_s = _FIRST_PER_S
    until_s = time.monotonic() + SEARCH_S

    def tried(rate_per_s: float) -> bool:
        begun_s, held = time.monotonic(), holds(rate_per_s)
        said = "holds" if held else "does not hold"
        print(f"  {rate_per_s:,.0f}/s {said} ({time.monotonic() - begun_s:.0f} s)", file=sys.stderr)
        return held

    while rate_per_s <= at_most_per_s and (not high or high / low > _CLOSE):
        if low and time.monotonic() > until_s:
            print(f"  no further: {SEARCH_S:g} s have passed", file=sys.stderr)
            break
        if tried(rate_per_s) or tried(rate_per_s):
            low = rate_per_s
        elif low:
            high = rate_per_s
        else:
            return 0.0
        rate_per_s = (low * high) ** 0.5 if high else rate_per_s * _STEP
    return low


def holds_below(found: Outcome, limit_ms: float, settle_s: float) -> bool:
    """Whether every event was answered well and p99.9 is below a limit. If not, wait `settle_s` for the backlog."""
    fast = found.bad == 0 and found.latencies.quantile_ms(0.999) < limit_ms
    if not fast:
        time.sleep(settle_s)
    return fast
