"""The events of figures 8, 10 and `rates`, the load of figure 8, and which latencies are taken of it and shown."""

from bench.keeping import Figures
from bench.kept_results import Results
from bench.load.latencies import Latencies
from bench.payments import Payments

QUANTILES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99, "p999_ms": 0.999, "p9999_ms": 0.9999}
# Fewer latencies above a quantile say little of it.
_ABOVE_LEAST = 10
WINDOW_MS = 60 * 60_000
RATE_PER_S = 500.0
EVENT_BYTES_MAX = 8_000
"""What an event of 103 fields needs on disk at most: in three topics, and in the reservoir."""
BEHIND_SHARE = 0.01
"""Whose backlog grows by more than this share of the rate does not keep up."""

# The paper runs for 35 minutes, of which 5 are left out.
_SETTLED_S, _MEASURED_S, _SECONDS_FLOOR = 60.0, 420.0, 5.0


def payments(scale: float, fields: int) -> Payments:
    """Return the events. At a smaller scale fewer come in a second of event time."""
    return Payments(
        events=10**11, cards=100_000, rate_per_s=RATE_PER_S * min(1.0, scale), rhythm=False, fields=fields
    )


def seconds(scale: float) -> tuple[float, float]:
    """Return for how long latencies are left out, and for how long they are measured then."""
    factor = min(1.0, scale)
    return max(_SECONDS_FLOOR, _SETTLED_S * factor), max(_SECONDS_FLOOR, _MEASURED_S * factor)


def latency_figures(latencies: Latencies) -> Figures:
    """Return the quantiles of latencies, the greatest, and how many there are."""
    return {
        **{key: latencies.quantile_ms(quantile) for key, quantile in QUANTILES.items()},
        "greatest_ms": latencies.greatest_ms,
        "measured_events": float(len(latencies)),
    }


def figure_of(results: Results, part: str, key: str) -> float | None:
    """Return a figure of a part, or None. A quantile that hardly any latency lies above is none."""
    known = results.figures
    # A part with both counts measured single events and batches.
    events = known.get(f"{part}.single_events", known.get(f"{part}.measured_events"))
    if key in QUANTILES and events is not None:
        if round(events * (1.0 - QUANTILES[key]), 6) < _ABOVE_LEAST:
            return None
    return known.get(f"{part}.{key}")
