"""What the Railgun paper itself says of its figures: its own machines, its own values.

They are what the text says. The curves of its figures have further values, which the text does not name.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of the paper. where: section and figure.  says: the statement."""

    where: str
    says: str


CLAIMS: dict[str, tuple[Claim, ...]] = {
    "fig9b": (
        Claim("section 5.2, figure 9b", "20 to 240 iterators by 10 to 120 windows, 500 events/s, by topics"),
        Claim(
            "section 5.2.1, figure 9b",
            "a cache of 220 chunks: little difference up to 210 iterators",
        ),
        Claim(
            "section 5.2.1, figure 9b",
            "at 240 iterators latencies rise: missed chunks, and garbage collection",
        ),
    ),
    "fig8": (
        Claim(
            "section 5.1",
            "sum per card over 60 minutes, 500 events/s, runs of 35 minutes, 5 of them left out",
        ),
        Claim(
            "section 5.1.1, figure 8", "Flink 1.11 cannot keep up with 500 events/s with hops of 10 s or less"
        ),
        Claim("section 5.1.1, figure 8", "Flink needs hops of a minute or more for 250 ms at p99.9"),
        Claim(
            "section 5.1.1, figure 8",
            "Railgun is faster than Flink with hops of a minute or less",
        ),
    ),
    "fig9a": (
        Claim(
            "section 5.2, figure 9a", "windows of 5 minutes to 7 days, 103 fields, 500 events/s, by topics"
        ),
        Claim(
            "section 5.2.1, figure 9a",
            "the size makes no difference; p99.99 is 75 to 150 ms",
        ),
    ),
}
