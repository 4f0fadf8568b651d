"""How long calls took, by percentiles."""

from collections.abc import Sequence


def percentile(sorted_s: Sequence[float], share: float) -> float:
    """The least value that this share of a growing, non-empty list does not exceed."""
    return sorted_s[min(len(sorted_s) - 1, int(share * len(sorted_s)))]


class Latencies:
    """Collects seconds."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def text(self) -> str:
        """p50, p99 and p99.9 in milliseconds."""
        if not self.seconds:
            return "…"
        ordered = sorted(self.seconds)
        shares = (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))
        return "   ".join(f"{name} {percentile(ordered, share) * 1000:.2f} ms" for name, share in shares)
